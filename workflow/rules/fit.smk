rule fit:
    input:
        data=f"{RESULTS}/data/prepared/{{dataset}}",
        graph=lambda w: INPUTS.graph_of(w.dataset, w.method),
    output:
        # `update` keeps the file before the job, because its cells that the configuration still asks for are kept.
        update(f"{RESULTS}/fits/{{dataset}}/{{method}}/{{block}}.cells"),
    log:
        f"{RESULTS}/logs/fit/{{dataset}}/{{method}}/{{block}}.log",
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
            + 3 * INPUTS.minutes(w.dataset, w.method, w.block)
        )(w, input, attempt),
        attempt=lambda w, attempt: attempt,
    params:
        cells=fit_param("cells"),
        class_path=fit_param("class_path"),
        code=fit_param("code"),
        metrics=fit_param("metrics"),
        score_options=fit_param("score_options"),
        scorer=fit_param("scorer"),
        limits=CONFIG.limits.model_dump(),
        versions=fit_param("versions"),
        again=lambda w: INPUTS.retry_errors(w.dataset, w.method, w.block),
        job=INPUTS.code_of("pipeline.fit_block", "pipeline.fit_process"),
        reuse=as_list(CONFIG.reuse),
    message:
        "Fitting and scoring {wildcards.method} on {wildcards.dataset}, {wildcards.block}"
    script:
        "../scripts/fit.py"
