"""A paper that is not in the repository: one YAML and one CSV in a folder that the configuration names."""

PAPER = """
papers:
  doe:
    short_name: Doe
    citation: "Doe: Fair Clustering of Everything, 2030"
    year: 2030
    experiments:
      - datasets: [blobs, synthetic]
        methods: [random, stripes]
        n_clusters: [2, 3]
        seeds: 2
        settings:
          stripes: {grid: {lam: [0, 1, 2]}}
    tables:
      table1:
        number: "1"
        title: Stripes
        own: stripes
        match: {fairness: balance, order: lam}
        ours: [random]
      table2:
        number: "2"
        title: One row
    figures:
      fig1:
        plot: front
        title: "Figure 1: balance against cost"
        datasets: [blobs, synthetic]
        methods: [random, stripes]
        n_clusters: [3]
        x: sse
        y: [balance]
        table: "1"
      fig2:
        plot: clusters
        title: "Figure 2: clusters"
        datasets: [synthetic]
        methods: [stripes]
        n_clusters: [2]
        points: true
    claims:
      balanced:
        text: Stripes are balanced.
        check: reaches
        datasets: [synthetic]
        methods: [stripes]
        metrics: [balance]
        options: {level: 0.9}
"""
REPORTED = """table,dataset,n_clusters,lam,method,metric,value
1,blobs,3,1,stripes,sse,1200.0
1,blobs,3,1,stripes,balance,0.50
1,blobs,3,,random,sse,1300.0
1,blobs,3,,random,balance,0.40
1,synthetic,2,1,stripes,sse,400.0
2,synthetic,3,1,stripes,kmedians_cost,300.0
"""
SYNTHETIC = {
    "title": "Synthetic",
    "generator": "fairclust.datasets.synthetic.make_synthetic",
    "n_clusters": 2,
    "scale": "l2",
}
