"""Choose the settings that stand for each method, and rank the methods."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.outputs import atomic_write, write_text
    from fairclust.pipeline.names import Names
    from fairclust.pipeline.scores import load_scores
    from fairclust.report.leaderboard import make_leaderboard, make_settings

    scores = load_scores(Path(snakemake.input[0]))
    with atomic_write(Path(snakemake.output.settings)) as file:
        make_settings(scores).to_parquet(file, index=False)
    leaderboard = make_leaderboard(scores, Names(**snakemake.params.names))
    write_text(Path(snakemake.output.leaderboard), leaderboard.to_csv(index=False))
