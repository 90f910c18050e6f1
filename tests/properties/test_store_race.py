"""What was promised of the races holds over what a real store recorded.

The promises are those of the other files here: one holder a lease in both phases, watermarks that
never fall, readings that never get older. Beside them stand those that need rows.
"""

from hypothesis import event as reached
from hypothesis import settings
from hypothesis.stateful import invariant
from threadbook.application.roots import chosen
from threadbook.domain.events import (
    MemoryModeSet,
    OutputWithdrawn,
    Phase2Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
)
from threadbook.domain.selection import cutoff_at
from threadbook.projections import jobs, stage1_outputs, threads

from tests.application.conftest import nobodys_settings  # noqa: F401
from tests.properties.store_race import UNUSED_DAYS, StoreRace
from tests.properties.test_phase1_lease import Phase1Lease
from tests.properties.test_phase2_lease import Phase2Lease
from tests.properties.test_source_updated_at import SourceUpdatedAt
from tests.properties.test_watermarks import Phase1Watermarks, Phase2Watermarks


class SelectedOrPrunable:
    """What a root was not made from is within its cutoff or prunable, and never both."""

    @invariant()
    def an_enabled_output_outside_is_within_the_cutoff_or_prunable_and_never_both(self):
        selected = self.selected_by_the_log()
        steps = self.steps["w1"]
        now = steps.around.now()
        with steps.store.reading() as view:
            within = {
                row.thread_id
                for root in self.places
                for row in chosen(view, root, steps.around.policy, now=now)
            }
            aged = {
                row.thread_id
                for row in view.find(
                    stage1_outputs,
                    stage1_outputs.PRUNABLE,
                    memory_version="v1",
                    cutoff=cutoff_at(now, max_unused_days=UNUSED_DAYS),
                    most=99,
                )
            }
            outputs = view.rows(stage1_outputs, ())
        for output in outputs:
            thread_id = output.thread_id
            assert not (thread_id in within and thread_id in aged), "both"
            if thread_id in selected:
                reached("selected, within" if thread_id in within else "selected, outside")
                assert thread_id not in aged, "what the folder was made from would be pruned"
            elif output.memory_mode == "enabled":
                reached("aged" if thread_id in aged else "within")
                assert thread_id in within or thread_id in aged, "neither"

    def selected_by_the_log(self):
        """Whose output a root's last success read and still is there, by the events alone."""
        selected = {}
        for event in self.everything:
            match event:
                case Phase2Succeeded(scope=scope, selected=read):
                    selected[scope] = {each.thread_id for each in read if each.matched}
                case (
                    OutputWithdrawn(thread_id=gone)
                    | Stage1SucceededNoOutput(thread_id=gone, output_removed=True)
                    | ThreadForgotten(thread_id=gone)
                ):
                    if isinstance(event, OutputWithdrawn):
                        assert all(gone not in each for each in selected.values()), "pruned"
                    for each in selected.values():
                        each.discard(gone)
                case StoreReset():
                    selected.clear()
        return set().union(*selected.values())


class Published:
    """Nothing is published of a thread that is forgotten, not enabled, or of another root."""

    @invariant()
    def a_success_rests_on_threads_that_are_enabled_and_of_its_root(self):
        mode, scope_of = {}, {}
        for event in self.everything:
            match event:
                case ThreadRegistered(thread_id=thread, mode=now, scope=scope):
                    mode[thread], scope_of[thread] = now, scope
                case MemoryModeSet(thread_id=thread, mode=now):
                    mode[thread] = now
                case ThreadPolluted(thread_id=thread):
                    mode[thread] = "polluted"
                case ThreadForgotten(thread_id=thread):
                    mode[thread] = "forgotten"
                case ThreadRescoped(thread_id=thread, scope=scope):
                    scope_of[thread] = scope
                case Phase2Succeeded(scope=root, selected=read):
                    for each in read:
                        thread = each.thread_id
                        assert (mode[thread], scope_of[thread]) == ("enabled", root), "published"


class Owned:
    @invariant()
    def a_running_job_has_an_owner_and_an_end(self):
        for job in self.steps["w1"].rows(jobs, ()):
            if job.status == "running":
                assert job.ownership_token
                assert job.worker_id
                assert job.lease_until
            else:
                assert job.lease_until is None


class Follows:
    @invariant()
    def an_output_has_the_mode_and_the_scope_of_its_thread(self):
        steps = self.steps["w1"]
        with steps.store.reading() as view:
            for output in view.rows(stage1_outputs, ()):
                (thread,) = view.rows(threads, (output.thread_id,))
                assert (output.memory_mode, output.scope) == (thread.mode, thread.scope)


class OnAStore(
    Phase1Lease,
    Phase2Lease,
    Phase1Watermarks,
    Phase2Watermarks,
    SourceUpdatedAt,
    SelectedOrPrunable,
    Published,
    Owned,
    Follows,
    StoreRace,
):
    pass


TestOnAStore = OnAStore.TestCase
TestOnAStore.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
