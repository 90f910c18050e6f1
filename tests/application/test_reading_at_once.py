"""Several sessions are read at once: when they are claimed, what stops them, what that costs."""

import threading
import time
from concurrent.futures import Future

import pytest
from msgspec.structs import replace
from threadbook.application.ports import Extracted, ExtractionFailed
from threadbook.application.surroundings import Provider
from threadbook.domain.events import (
    ProviderConsented,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Paid,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    Tokens,
)
from threadbook.domain.refusals import NotConsented
from threadbook.projections import jobs

from tests.application.homes import NOON, Home, Session

SERVER = "http://127.0.0.1:1/v1"
MODEL = "small-model"


def cost(input_: int = 100, output: int = 10) -> Tokens:
    return Tokens(model=MODEL, calls=1, input=input_, output=output)


class Later:
    """A model that answers when the test says so: `answer` is called in a thread of its own."""

    name = MODEL
    remaining_percent = None

    def __init__(self, answer, *, slots: int = 8, asks: int = 0) -> None:
        self.answer, self.slots, self.asks = answer, slots, asks
        self.in_flight: dict[str, Future] = {}
        self.most = 0
        self.prompt: str | None = None
        self.asked: list[str] = []
        self.lock = threading.Lock()

    def digest(self, memory_version):
        return self.prompt

    def extract(self, material):
        future: Future = Future()
        thread_id = material.header.thread_id
        if self.asks and not material.may_spend(self.asks):
            raise ExtractionFailed("transient", "budget", stops=True)
        with self.lock:
            self.asked.append(thread_id)
            self.in_flight[thread_id] = future
            self.most = max(self.most, len(self.in_flight))
        threading.Thread(target=self.work, args=(thread_id, future), daemon=True).start()
        return future

    def work(self, thread_id: str, future: Future) -> None:
        try:
            found = self.answer(thread_id)
        except ExtractionFailed as error:
            self.end(thread_id, future.set_exception, error)
        else:
            self.end(thread_id, future.set_result, found)

    def end(self, thread_id, setter, value) -> None:
        with self.lock:
            if self.in_flight.pop(thread_id, None):
                setter(value)

    def stop(self):
        with self.lock:
            for future in self.in_flight.values():
                future.set_exception(
                    ExtractionFailed("transient", "stopped", tokens=cost(1_000, 0))
                )
            self.in_flight.clear()


def taught(thread_id: str) -> Extracted:
    return Extracted(
        raw_memory=f"raw {thread_id}",
        rollout_summary=f"summary {thread_id}",
        rollout_slug=None,
        tokens=cost(),
    )


def asking(home: Home, extractor: Later, **options):
    """One run with a provider, whose limits are given, and consent."""
    given = {k: options.pop(k) for k in list(options) if k in Provider.__struct_fields__}
    most = options.pop("max_rollouts_per_startup", 128)
    provider = Provider(base_url=SERVER, extract_model=MODEL, consolidation_model=MODEL, **given)
    memory = home.memory
    before = memory._around
    limits = replace(before.policy.limits, running_cap=8, max_rollouts_per_startup=most)
    policy = replace(before.policy, provider=provider, limits=limits)
    memory._around = replace(before, extractor=extractor, policy=policy)
    try:
        return home.run(**{"consented": True, **options})
    finally:
        memory._around = before


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path)
    yield made
    made.memory.close()


def sessions(many: int) -> list[Session]:
    return [Session(number=n, ended_at=NOON - 7 * 3600 - n) for n in range(1, many + 1)]


def test_a_session_is_claimed_when_a_slot_is_free_and_at_most_eight_are_held(home):
    home.write(*sessions(20))
    held = []
    eight = threading.Barrier(8)
    first_eight = {each.id for each in sessions(8)}

    def answer(thread_id):
        if thread_id in first_eight:
            eight.wait(30)  # Nobody answers before eight have been asked.
        with home.memory.store.reading() as view:
            held.append(len(view.find(jobs, jobs.RUNNING, kind=jobs.STAGE1, memory_version="v1")))
        return taught(thread_id)

    model = Later(answer)
    report = asking(home, model)

    assert report.stage1.succeeded == 20
    assert model.most == 8
    assert max(held) <= 8
    assert {e.tokens for e in home.events(Stage1Succeeded)} == {cost()}


def test_one_reply_that_does_not_come_holds_none_of_the_others(home):
    home.write(*sessions(12))
    slow = sessions(12)[0].id
    until = time.monotonic() + 30

    def answer(thread_id):
        while thread_id == slow and len(home.events(Stage1Succeeded)) < 11:
            assert time.monotonic() < until, "the others are held"
            time.sleep(0.01)
        return taught(thread_id)

    report = asking(home, Later(answer))

    assert report.stage1.succeeded == 12
    assert home.events(Stage1Succeeded)[-1].thread_id == slow


def test_a_stop_gives_every_lease_back_with_what_its_call_has_cost(home):
    home.write(*sessions(12))

    def answer(thread_id):
        if thread_id == sessions(12)[7].id:
            stopped.set()
        time.sleep(60)

    stopped = threading.Event()
    model = Later(answer)

    def interrupt(*_, **__):
        stopped.wait(30)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadbook.application.phase1.wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            asking(home, model)

    released = home.events(Stage1LeaseReleased)
    assert len(released) == len(home.events(Stage1LeaseClaimed)) == 8
    assert {(e.reason, e.tokens, e.retry_remaining) for e in released} == {
        ("stopped", cost(1_000, 0), None)
    }
    assert asking(home, Later(taught)).stage1.succeeded == 12


def test_a_stop_while_an_answer_is_looked_through_counts_what_it_has_cost(home):
    home.write(*sessions(3))
    rollouts = home.memory._around.rollouts
    all_there = threading.Barrier(3)

    class Stopped:
        """Somebody presses Ctrl-C when the second answer's quotes are looked up."""

        looked = 0

        def __getattr__(self, name):
            return getattr(rollouts, name)

        def items(self, *args, **more):
            self.looked += 1
            if self.looked == 2:
                raise KeyboardInterrupt
            return rollouts.items(*args, **more)

    def answer(thread_id):
        all_there.wait(30)
        return replace(taught(thread_id), prompt_digest="p")

    home.memory._around = replace(home.memory._around, rollouts=Stopped())
    with pytest.raises(KeyboardInterrupt):
        asking(home, Later(answer))

    (released, *others) = home.events(Stage1LeaseReleased)
    assert released.tokens == cost()
    recorded = [*home.events(Stage1Succeeded), released, *others]
    assert len(recorded) == len(home.events(Stage1LeaseClaimed)) == 3
    assert all(each.tokens.calls == 1 for each in recorded)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_call_cost_is_counted_though_its_session_was_forgotten_meanwhile(home, fails):
    home.write(*sessions(2))
    gone, stays = (each.id for each in sessions(2))

    def answer(thread_id):
        if thread_id == gone:
            home.memory.forget(gone)
            if fails:
                raise ExtractionFailed("bad_reply", "no_json", tokens=cost())
        return taught(thread_id)

    report = asking(home, Later(answer))

    assert (report.stage1.succeeded, report.stage1.failed) == (1, 1)
    (paid,) = home.events(Stage1Paid)
    assert (paid.thread_id, paid.tokens) == (gone, cost())
    assert report.tokens == Tokens(model=MODEL, calls=2, input=200, output=20)
    assert [each.thread_id for each in home.events(Stage1Succeeded)] == [stays]
    assert asking(home, Later(taught)).stage1.claimed == 0


def test_a_session_that_is_forgotten_while_its_budget_is_asked_for_ends_no_run(home):
    home.write(*sessions(2))

    class Forgotten(Later):
        def extract(self, material):
            if material.header.thread_id == sessions(2)[0].id:
                home.memory.forget(material.header.thread_id)
                raise ExtractionFailed("transient", "budget", stops=True)
            return super().extract(material)

    report = asking(home, Forgotten(taught))

    assert report.waiting == {"budget": 2}
    assert not home.events(Stage1Paid)


def test_a_start_reads_so_many_and_a_backfill_all(home):
    home.write(*sessions(5))

    first = asking(home, Later(taught), max_rollouts_per_startup=2)
    rest = asking(home, Later(taught), max_rollouts_per_startup=2, backfill=-1)

    assert (first.stage1.claimed, first.waiting) == (2, {"startup_cap": 3})
    assert first.waiting_tokens > 3 * 16_384
    assert (rest.stage1.claimed, rest.waiting_tokens) == (3, 0)


def test_what_a_budget_does_not_cover_is_not_asked_and_has_failed_at_nothing(home):
    home.write(*sessions(4))
    model = Later(taught, slots=1, asks=500)

    report = asking(home, model, max_tokens_per_run=700)
    again = asking(home, Later(taught, slots=1, asks=500), max_tokens_per_run=0)

    assert model.asked == [each.id for each in sessions(2)]
    assert (report.stage1.claimed, report.stage1.succeeded, report.stage1.failed) == (2, 2, 0)
    assert report.waiting == {"budget": 2}
    (released,) = home.events(Stage1LeaseReleased)
    assert (released.reason, released.retry_remaining) == ("budget", None)
    assert again.stage1.succeeded == 2


def test_a_days_budget_counts_every_run_of_the_day_and_begins_anew(home):
    home.write(*sessions(3))

    first = asking(home, Later(taught, slots=1, asks=110), max_tokens_per_day=220)
    second = asking(home, Later(taught, slots=1, asks=110), max_tokens_per_day=220)
    tomorrow = asking(home.later(86_400), Later(taught, slots=1, asks=110), max_tokens_per_day=220)

    assert (first.stage1.succeeded, first.waiting) == (2, {"budget": 1})
    assert (second.stage1.succeeded, second.waiting) == (0, {"budget": 1})
    assert tomorrow.stage1.succeeded == 1


def test_a_refused_key_ends_the_run_and_costs_no_try(home):
    home.write(*sessions(3))

    def refused(_):
        raise ExtractionFailed("transient", "unauthorized", stops=True)

    report = asking(home, Later(refused, slots=1))

    assert (report.stage1.failed, report.waiting) == (1, {"unauthorized": 2})
    (failed,) = home.events(Stage1Failed)
    assert (failed.kind, failed.retry_remaining) == ("transient", 3)
    assert report.all_failed


def test_a_provider_with_little_left_is_asked_no_more(home):
    home.write(*sessions(4))
    model = Later(taught, slots=1)
    model.remaining_percent = 24.9

    report = asking(home, model)

    assert (report.stage1.succeeded, report.waiting) == (1, {"rate_limit": 3})


def test_no_session_is_sent_before_somebody_agreed_and_nobody_is_asked_twice(home):
    home.write(*sessions(2))
    silent = Later(taught)

    with pytest.raises(NotConsented, match=r"127\.0\.0\.1.*small-model.*--yes"):
        asking(home, silent, consented=False)
    asking(home, Later(taught), consented=True)
    home.write(Session(number=9))
    later = asking(home, Later(taught), consented=False)

    assert silent.asked == []
    (said,) = home.events(ProviderConsented)
    assert (said.base_url, said.model) == (SERVER, MODEL)
    assert later.stage1.succeeded == 1


def test_nothing_worth_keeping_has_its_cost_too(home):
    home.write(*sessions(1))

    def nothing(_):
        return Extracted(
            raw_memory=" \n", rollout_summary="", rollout_slug=None, tokens=cost(), omitted=3
        )

    report = asking(home, Later(nothing))

    assert report.stage1.no_output == 1
    (event,) = home.events(Stage1SucceededNoOutput)
    assert (event.tokens, event.omitted) == (cost(), 3)
    assert report.tokens == cost()


def test_again_reads_what_another_prompt_has_read_and_nothing_else(home):
    home.write(*sessions(2))

    def by(prompt):
        def answer(thread_id):
            return replace(taught(thread_id), prompt_digest=prompt)

        model = Later(answer)
        model.prompt = prompt
        return model

    asking(home, by("one"))
    same = asking(home, by("one"), again=True)
    other = asking(home, by("two"), again=True)

    assert same.stage1.claimed == 0
    assert other.stage1.succeeded == 2


def test_what_offline_read_is_stale_for_a_model_and_not_the_reverse(home):
    home.write(*sessions(2))
    home.run()

    by_a_model = asking(home, Later(taught))
    offline_again = home.run()

    assert by_a_model.stage1.succeeded == 2
    assert offline_again.stage1.claimed == 0
