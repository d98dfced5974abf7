"""Data sets that no mirror has: the shipped entries prepare tables of the same form."""

from pathlib import Path

import pytest

from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import SourceSpec

HMDA = (
    "loan_amount,total_loan_costs,origination_charges,discount_points,lender_credits,interest_rate,"
    "combined_loan_to_value_ratio,loan_term,derived_sex,derived_race\n"
    "205000,NA,NA,,,NA,NA,360,Male,White\n"
    "95000,4000.5,1200,,150,4.25,80.5,180,Joint,Asian\n"
    "305000,Exempt,Exempt,Exempt,Exempt,Exempt,Exempt,Exempt,Sex Not Available,2 or more minority races\n"
    "415000,NA,NA,,,5.5,95,360,Female,Black or African American\n"
    "105000,NA,NA,,,5.5,95,360,Joint,Race Not Available\n"
)
ACS_COLUMNS = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P", "ST", "PINCP")
ACS = (
    "@RELATION ACSIncome\n\n" + "".join(f"@ATTRIBUTE {name} REAL\n" for name in ACS_COLUMNS) + "\n@DATA\n"
    "18.0,1.0,18.0,5.0,4720.0,13.0,17.0,21.0,2.0,2.0,1.0,1600.0\n"
    "53.0,5.0,17.0,5.0,3605.0,18.0,16.0,40.0,1.0,1.0,1.0,10000.0\n"
    "41.0,1.0,16.0,5.0,7330.0,1.0,17.0,40.0,1.0,6.0,1.0,24000.0\n"
    "18.0,6.0,18.0,5.0,2722.0,1.0,17.0,2.0,2.0,9.0,1.0,180.0\n"
)
ADULT = (
    "@relation adult\n\n@attribute age numeric\n@attribute fnlwgt numeric\n@attribute education-num numeric\n"
    "@attribute sex { Female, Male }\n@attribute capital-gain numeric\n@attribute hours-per-week numeric\n"
    "@attribute class { >50K, <=50K }\n\n@data\n"
    "25, 226802, 7, Male, 0, 40, <=50K\n38, 89814, 9, Female, 0, 50, >50K\n44, 160323, 10, Male, 7688, 40, >50K\n"
)
BANK = (
    "@RELATION bank\n"
    + "".join(
        f"@ATTRIBUTE V{i} {'{married,single,divorced}' if i == 3 else 'NUMERIC'}\n" for i in range(1, 13)
    )
    + "@DATA\n58,0,married,0,0,2143,0,0,0,0,0,261\n44,0,single,0,0,29,0,0,0,0,0,151\n"
    "33,0,divorced,0,0,2,0,0,0,0,0,76\n"
)
CREDIT = (
    "@RELATION credit\n"
    + "".join(f"@ATTRIBUTE x{i} REAL\n" for i in range(1, 19))
    + "@DATA\n20000.0,0,2.0,0,24,0,0,0,0,0,0,3913,0,0,0,0,0,0\n120000.0,0,1.0,0,26,0,0,0,0,0,0,2682,0,0,0,0,0,9\n"
    "90000.0,0,2.0,0,34,0,0,0,0,0,0,29239,0,0,0,0,0,1518\n"
)
ATHLETES = (
    "ID,Name,Sex,Age,Height,Weight,Team,Year\n"
    '1,"A Dijiang",M,24,180,80,"China",1992\n2,"A Lamusi, jr.",M,23,170,60,"China",2012\n'
    '3,"Gunnar Aaby",M,24,NA,NA,"Denmark",1920\n5,"Christine Aaftink",F,21,185,82,"Netherlands",1988\n'
)
COMPAS = (
    "id,name,first,last,date,sex,dob,age,age_cat,race,juv_fel_count,decile_score,juv_misd_count,juv_other_count,"
    "priors_count,decile_score,priors_count,two_year_recid\n"
    "1,a b,a,b,2013-08-14,Male,1947-04-18,69,old,Other,0,1,0,0,0,1,0,0\n"
    "3,c d,c,d,2013-01-27,Male,1982-01-22,34,mid,African-American,0,3,0,0,0,3,0,1\n"
    "4,e f,e,f,2013-04-14,Female,1991-05-14,24,young,Caucasian,0,4,0,1,4,4,4,1\n"
)
# This file has no header, and tabs between its cells.
CENSUS = "".join("\t".join(str((i + j) % 2) for j in range(125)) + "\n" for i in range(4))
# For each data set: the text of its file, the number of features, and the sizes of the groups.
FORMS = {
    "census_ii": (CENSUS, 25, [2, 2]),
    "hmda_2022": (HMDA, 8, [1, 1, 2, 1]),
    "hmda_2022_race": (HMDA, 8, [1, 1, 1, 1, 1]),
    "acs_income": (ACS, 4, [2, 2]),
    "acs_income_race": (ACS, 4, [1, 1, 1, 1]),
    "adult_openml": (ADULT, 5, [2, 1]),
    "bank_openml": (BANK, 3, [1, 1, 1]),
    "credit_openml": (CREDIT, 4, [2, 1]),
    "athletes": (ATHLETES, 3, [2, 1]),
    "compas": (COMPAS, 5, [1, 1, 1]),
    "compas_sex": (COMPAS, 5, [2, 1]),
}


@pytest.mark.parametrize("name", FORMS)
def test_shape_and_sizes(catalogue, name, tmp_path):
    text, width, sizes = FORMS[name]
    ((source, stated),) = catalogue.sources_of(name).items()
    path = tmp_path / Path(stated.file).name
    path.write_text(text)
    dataset = catalogue.datasets[name].model_copy(update={"rows": None})
    # The text has not the hash of the file.
    ds = prepare_dataset(name, dataset, {source: path}, {source: SourceSpec(path=str(path))})
    assert ds.X.shape == (sum(sizes), width)
    assert [group["size"] for group in ds.card["groups"]] == sizes
