"""The memory roots of a version: every scope that has something to consolidate or to show.

No table of its own: a root is there because some row says so.
"""

# A JSON list of scopes in order. Outputs are many and their scopes few: the walk goes along the
# index from each scope to the next. Quarantined threads have no root.
ROOTS = """
SELECT json_group_array(scope)
FROM (
    WITH RECURSIVE steps (scope) AS (
        SELECT min(scope)
        FROM stage1_outputs
        WHERE memory_version = :memory_version AND memory_mode = 'enabled'
        UNION ALL
        SELECT (
            SELECT min(scope)
            FROM stage1_outputs
            WHERE memory_version = :memory_version AND memory_mode = 'enabled'
              AND scope > steps.scope
        )
        FROM steps
        WHERE steps.scope IS NOT NULL
    )
    SELECT scope FROM steps WHERE scope IS NOT NULL AND scope NOT GLOB 'quarantine:*'
    UNION
    SELECT job_key FROM jobs
    WHERE kind = 'memory_consolidate_global' AND memory_version = :memory_version
    UNION
    SELECT scope FROM selection WHERE memory_version = :memory_version
    UNION
    SELECT scope FROM artifacts WHERE memory_version = :memory_version
    ORDER BY scope
) AS known
"""
