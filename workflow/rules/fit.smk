def fit_param(name):
    """One of the parameters of a fit job, all of which are plain and short."""
    return lambda w: INPUTS.fit_params(w.dataset, w.method, w.block)[name]


rule fit:
    input:
        data=f"{RESULTS}/data/prepared/{{dataset}}",
        graph=lambda w: INPUTS.graph_of(w.dataset, w.method),
    output:
        # Not deleted before the job: its cells that the configuration still asks for are kept.
        update(f"{RESULTS}/fits/{{dataset}}/{{method}}/{{block}}.cells"),
    log:
        f"{RESULTS}/logs/fit/{{dataset}}/{{method}}/{{block}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/fit/{{dataset}}/{{method}}/{{block}}.tsv"
    # Of a data set, so that no block waits for another data set; how many blocks share a job of a cluster says
    # `group-components` in profiles/slurm.
    group:
        "fit_{dataset}"
    conda:
        "../envs/fairclust.yml"
    threads: of_method("threads", CONFIG.jobs.threads)
    resources:
        mem_mb=lambda w, input, attempt: scaled(
            of_method("mem_mb", CONFIG.jobs.mem_mb)(w), per_input_mb=6
        )(w, input, attempt),
        # Three times the estimate of the work: machines differ.
        runtime=lambda w, input, attempt: scaled(
            of_method("runtime", CONFIG.jobs.runtime)(w)
            + 3 * INPUTS.minutes(w.dataset, w.method, w.block)
        )(w, input, attempt),
        attempt=lambda w, attempt: attempt,
        slurm_partition=of_method("partition"),
        gres=of_method("gres"),
    params:
        cells=fit_param("cells"),
        class_path=fit_param("class_path"),
        code=fit_param("code"),
        metrics=fit_param("metrics"),
        score_options=fit_param("score_options"),
        scorer=fit_param("scorer"),
        limits=CONFIG.limits.model_dump(),
        again=lambda w: INPUTS.retry_errors(w.dataset, w.method, w.block),
        job=INPUTS.code_of("pipeline.fit_block", "pipeline.fit_process"),
        reuse=reuse_folders(CONFIG),
    message:
        "Fitting and scoring {wildcards.method} on {wildcards.dataset}, {wildcards.block}"
    script:
        "../scripts/fit.py"
