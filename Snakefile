# The workflow is in workflow/Snakefile. An included file states no default target, so it is stated here.
include: "workflow/Snakefile"


rule everything:
    default_target: True
    input:
        rules.all.input,
    localrule: True
