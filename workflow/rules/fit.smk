rule fit:
    input:
        unpack(once_begun(lambda w: INPUTS.data_of(w.dataset, w.job))),
    output:
        f"{RESULTS}/fits/{{dataset}}/{{job}}.cells",
    log:
        f"{RESULTS}/logs/fit/{{dataset}}/{{job}}.log",
    # The attempt after the last one fits nothing. It writes what is finished, and an error for every other cell, so that
    # tables and page are made without them. The rule `check` then sets the exit status. On a cluster, retries of the
    # process that a job starts would run inside the old allocation, so only the main process has them.
    retries: CONFIG.jobs.attempts if workflow.is_main_process else 0
    conda:
        "../envs/fairclust.yml"
    threads: of_method("threads", CONFIG.jobs.threads)
    resources:
        **of_cluster(slurm_partition="partition", gres="gres"),
        mem_mb=lambda w, input, attempt: scaled(
            of_method("mem_mb", CONFIG.jobs.mem_mb)(w), per_input_mb=6
        )(w, input, attempt),
        # Three times the estimated time, because machines differ.
        runtime=lambda w, input, attempt: scaled(
            of_method("runtime", CONFIG.jobs.runtime)(w)
            + 3 * INPUTS.minutes(w.dataset, w.job)
        )(w, input, attempt),
        attempt=lambda w, attempt: attempt,
    params:
        function="fairclust.pipeline.fit_block:fit",
        digest=lambda w: INPUTS.fit_digest(w.dataset, w.job),
        again=lambda w: INPUTS.retry_errors(w.dataset, w.job),
        remade=lambda w: INPUTS.remade(f"fit/{w.dataset}/{w.job}"),
    message:
        "Fitting and scoring {wildcards.job} on {wildcards.dataset}"
    script:
        "../scripts/job.py"
