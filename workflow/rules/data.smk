# Fetch the sources of a data set, prepare its table, and find the neighbours of its points.


rule download_source:
    output:
        directory(f"{RESULTS}/data/raw/{{source}}"),
    log:
        f"{RESULTS}/logs/download_source/{{source}}.log",
    cache: "omit-software" if CACHE else False
    # The machine that starts Snakemake has network access, unlike many nodes of clusters.
    localrule: True
    conda:
        "../envs/fairclust.yml"
    params:
        urls=ask(lambda source: PLAN.source(source).urls),
        sha256=ask(lambda source: PLAN.source(source).sha256),
        licence=ask(lambda source: PLAN.source(source).licence),
        source=ask(lambda source: plain(PLAN.source(source))),
        mirrors=mirrors_of,
    message:
        "Fetching {wildcards.source}"
    script:
        "../scripts/download_source.py"


rule prepare_dataset:
    input:
        sources=ask(PLAN.source_folders),
        # The prefix of a module is not for the user's own files.
        own=ask(lambda dataset: local(PLAN.own_files(dataset))),
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
        features=ask(lambda dataset: PLAN.dataset(dataset).get("features")),
        sensitive=ask(lambda dataset: PLAN.dataset(dataset).get("sensitive")),
        # [standardize, l2] unless the catalogue says otherwise.
        scale=ask(lambda dataset: PLAN.dataset(dataset).get("scale")),
        other=ask(PLAN.other_keys),
        sources=ask(lambda dataset: all_plain(PLAN.sources_of(dataset))),
        code=ask(PLAN.prepare_code),
        same_digits=CONFIG.same_digits,
    message:
        "Preparing {wildcards.dataset}"
    script:
        "../scripts/prepare_dataset.py"


# For figures that show the points themselves.
use rule prepare_dataset as prepare_unscaled with:
    output:
        directory(f"{RESULTS}/data/unscaled/{{dataset}}"),
    log:
        f"{RESULTS}/logs/prepare_unscaled/{{dataset}}.log",
    params:
        features=ask(lambda dataset: PLAN.dataset(dataset).get("features")),
        sensitive=ask(lambda dataset: PLAN.dataset(dataset).get("sensitive")),
        scale=[],
        other=ask(PLAN.other_keys),
        sources=ask(lambda dataset: all_plain(PLAN.sources_of(dataset))),
        code=ask(PLAN.prepare_code),
        same_digits=CONFIG.same_digits,
    message:
        "Preparing {wildcards.dataset}, unscaled"


rule neighbour_graph:
    input:
        f"{RESULTS}/data/prepared/{{dataset}}",
    output:
        directory(f"{RESULTS}/data/graphs/{{dataset}}"),
    log:
        f"{RESULTS}/logs/neighbour_graph/{{dataset}}.log",
    cache: CACHE
    conda:
        "../envs/fairclust.yml"
    threads: CONFIG.jobs.threads
    resources:
        mem_mb=scaled(4000, per_input_mb=10),
        runtime=scaled(60, per_input_mb=0.5),
    params:
        n_neighbors=CONFIG.graph.n_neighbors,
        same_digits=CONFIG.same_digits,
        code=lambda _: code_of(
            "fairclust.pipeline.data",
            packages=("numpy", "scipy", "scikit-learn", "numba", "pynndescent"),
        ),
    message:
        "Finding {params.n_neighbors} neighbours of every point of {wildcards.dataset}"
    script:
        "../scripts/neighbour_graph.py"


# For nodes without internet, run this first on a login node that has it: snakemake --cores 4 download
rule download:
    input:
        PLAN.source_folders(*PLAN.datasets),
    log:
        f"{RESULTS}/logs/download.log",
    localrule: True
    conda:
        "../envs/fairclust.yml"
    message:
        "Checking the downloads"
    script:
        "../scripts/download.py"
