rule download_source:
    input:
        lambda w: PLAN.own_archive(w.source),
    output:
        directory(f"{RESULTS}/data/raw/{{source}}"),
    log:
        f"{RESULTS}/logs/download_source/{{source}}.log",
    cache: "omit-software" if CACHE else False
    # The machine that starts Snakemake has network; nodes of a cluster often have none.
    localrule: True
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(500),
        runtime=scaled(60),
    params:
        spec=lambda w: PLAN.source_params(w.source),
        asked=lambda w: PLAN.asked(w.source),
    message:
        "Fetching {wildcards.source}"
    script:
        "../scripts/download_source.py"


rule prepare_dataset:
    input:
        sources=lambda w: PLAN.source_folders(w.dataset),
        own=lambda w: PLAN.own_files(w.dataset),
    output:
        directory(f"{RESULTS}/data/prepared/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_dataset/{{dataset}}.log",
    cache: CACHE
    conda:
        "../envs/fairclust.yml"
    resources:
        mem_mb=scaled(2000, per_input_mb=20),
        runtime=scaled(30, per_input_mb=0.1),
    params:
        spec=lambda w: PLAN.dataset_params(w.dataset),
        versions=PLAN.versions("numpy", "pandas", "scikit-learn"),
    message:
        "Preparing {wildcards.dataset}"
    script:
        "../scripts/prepare_dataset.py"


# The same without scaling, for figures that show points.
use rule prepare_dataset as prepare_plane with:
    output:
        directory(f"{RESULTS}/data/plane/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_plane/{{dataset}}.log",
    params:
        spec=lambda w: PLAN.dataset_params(w.dataset, scale="none"),
        versions=PLAN.versions("numpy", "pandas", "scikit-learn"),
    message:
        "Preparing {wildcards.dataset}, unscaled"


rule build_graph:
    input:
        f"{RESULTS}/data/prepared/{{dataset}}",
    output:
        directory(f"{RESULTS}/data/graphs/{{dataset}}"),
    log:
        f"{RESULTS}/logs/build_graph/{{dataset}}.log",
    cache: CACHE
    conda:
        "../envs/fairclust.yml"
    threads: CONFIG.resources.threads
    resources:
        mem_mb=scaled(4000, per_input_mb=10),
        runtime=scaled(60, per_input_mb=0.5),
    params:
        graph=PLAN.graph_params(),
        versions=PLAN.versions("numpy", "scipy", "scikit-learn", "numba", "pynndescent"),
    message:
        "Building the neighbour graph of {wildcards.dataset}"
    script:
        "../scripts/build_graph.py"
