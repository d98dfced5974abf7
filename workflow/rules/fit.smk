# Fit a method on a data set: every K, every setting of its grid (lambda, for most methods), every seed.


rule fit:
    input:
        unpack(of_fit(PLAN.fit_inputs)),
    output:
        f"{RESULTS}/fits/{{dataset}}/{{method}}.parquet",
    log:
        f"{RESULTS}/logs/fit/{{dataset}}/{{method}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit/{{dataset}}/{{method}}.tsv"
    # The attempt after the last one fits nothing. It writes what is finished, and an error for every other fit, so that
    # tables and page are made without them. The rule `check` then sets the exit status. A submission of several jobs
    # ends with the first that is killed, so those behind it begin in a later attempt. On a cluster, retries of the
    # process that a job starts would run inside the old allocation, so only the main process has them.
    retries: CONFIG.jobs.attempts + OTHERS_IN_GROUP if workflow.is_main_process else 0
    conda:
        "../envs/fairclust.yml"
    threads: of_fit(lambda fit: PLAN.method(fit).jobs.threads or CONFIG.jobs.threads)
    resources:
        mem_mb=scaled_fit(
            lambda fit: PLAN.method(fit).jobs.mem_mb or CONFIG.jobs.mem_mb,
            per_input_mb=6,
        ),
        # Three times the estimated time, because machines differ.
        runtime=scaled_fit(
            lambda fit: (PLAN.method(fit).jobs.runtime or CONFIG.jobs.runtime)
            + 3 * PLAN.minutes(fit)
        ),
        attempt=lambda wildcards, attempt: attempt,
        gives_up=lambda wildcards, attempt: int(attempt > CONFIG.jobs.attempts),
    params:
        # In a sweep, the wildcard is METHOD.SWEEP.
        method=of_fit(lambda fit: fit.method),
        class_path=of_fit(lambda fit: PLAN.method(fit).class_),
        # Of every experiment: n_clusters (K), fixed params, axes such as {"lam": [0, 10, 100]}, and seeds. The axes are
        # those of config/methods, unless a data set in config/datasets or an experiment in config/papers states others.
        grids=of_fit(PLAN.grids),
        metrics=of_fit(PLAN.metrics),
        code=of_fit(PLAN.fit_code),
        scorer=of_fit(PLAN.scorer_code),
        cell_seconds=CONFIG.limits.cell_seconds,
    message:
        "Fitting {wildcards.method} on {wildcards.dataset}"
    script:
        "../scripts/fit.py"
