"""Compare the methods of the run with the best known costs at levels of fairness."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.outputs import write_text
    from fairclust.pipeline.names import Names
    from fairclust.pipeline.scores import load_scores
    from fairclust.report.leaderboard import make_leaderboard

    scores = load_scores(Path(snakemake.input[0]))
    leaderboard = make_leaderboard(scores, Names(**snakemake.params.names))
    write_text(Path(snakemake.output[0]), leaderboard.to_csv(index=False))
