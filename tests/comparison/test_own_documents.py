"""A comparison over a user's documents with the user's questions: as good as one over the lab's own, and as certain."""

from __future__ import annotations

import dataclasses
import json
import pickle
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from doc_pages import section_of
from flat_compare import compare_by

import docmind_lab as dl
from docmind_lab.alternatives import Cooperative
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch.cells import cells_of, run_cell
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.comparison import simulated
from docmind_lab.experiments.comparison.documents import Documents, documents_in
from docmind_lab.experiments.comparison.replays import replayed_comparison
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.findings.study import Study
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import LibraryPlace
from docmind_lab.systems.base.questions import Question
from docmind_lab.tables.traces.importers.recordings import Recording
from docmind_lab.views.reports.build import question_section

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = EXAMPLES / "harbour-questions.jsonl"
# Nothing comes near it: what the runs find is a matter of the documents alone.
AMPLE_S = 500.0


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's documents."""
    folder = tmp_path_factory.mktemp("own") / "harbour"
    shutil.copytree(EXAMPLES / "harbour", folder)
    return folder


@pytest.fixture(scope="module")
def study(harbour: Path) -> Study:
    """Each question of the example once, with all the time that it needs."""
    return dl.compare(
        dl.docmind(documents=harbour, questions=QUESTIONS),
        AMPLE_S,
        alternatives="A",
        world=dl.World(latencies="typical"),
        runs=8,
    )


def comparison(harbour: Path, **changes: Any) -> Comparison:
    documents = documents_in(dl.docmind(harbour, QUESTIONS))
    made = Comparison(
        decision_timeout_s=8.0,
        runs=3,
        alternatives=(Cooperative(),),
        profile=LatencyProfile.named("typical"),
        documents=documents,
    )
    return dataclasses.replace(made, **changes)


def test_every_question_is_asked_and_recall_is_of_its_gold_documents(study: Study) -> None:
    runs = study.runs.set_index("question_id")
    assert set(runs.index) == {"sluice", "frost", "lines", "fuel", "lights", "dredger", "storm", "008"}
    assert set(runs["outcome"]) == {"answered"}
    gold = runs.drop(index="008")
    assert gold["source_recall"].between(0.0, 1.0).all()
    assert gold["source_recall"].mean() > 0.8, "seven small documents with words of their own are easily told apart"


def test_a_question_without_gold_has_no_recall_and_no_score(study: Study) -> None:
    run = study.runs.set_index("question_id").loc["008"]
    assert run[["source_recall", "recall_at_deadline", "answer_score"]].isna().all()


def test_the_model_answers_from_the_users_documents(study: Study) -> None:
    scored = study.runs["answer_score"].dropna()
    assert len(scored) == 6
    assert scored.mean() > 0.5, "a fact counts only if a cited document of the user's bears it out"


def test_the_manifest_says_which_documents_and_questions_without_their_text_or_place(
    study: Study, harbour: Path
) -> None:
    design = study.manifest["design"]
    place = LibraryPlace.of(harbour)
    assert design["corpus"] == place.name
    assert design["library"] == {"fingerprint": place.fingerprint, "documents": 7, "passages": 12}
    assert design["questions"]["count"] == 8
    text = json.dumps(study.manifest)
    assert str(harbour) not in text
    assert "sluice" not in text


def test_a_report_names_them(study: Study) -> None:
    facts = question_section(study).blocks[0]
    assert facts["Documents"].startswith("7 documents of the user's own, 12 passages (library-")
    assert facts["Questions"].startswith("8 of the user's own (")


def test_recall_that_nothing_defines_is_shown_as_such(harbour: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"text": "Who closes the sluice?"}\n')
    made = dl.compare(
        dl.docmind(documents=str(harbour), questions=file),
        AMPLE_S,
        alternatives="A",
        world=dl.World(latencies="typical"),
        runs=1,
    )
    (shown,) = made.summary(all=True)["source_recall"]
    assert shown != shown, "NaN: there is no gold, so 0 and 1 would both be wrong"
    assert "nan" not in str(made).lower()
    assert "source recall" not in str(made).partition("Choose")[2]


def test_the_lab_s_own_documents_take_questions_of_the_users(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text('{"text": "What is a budget?", "gold_documents": ["budget.md"]}\n')
    documents = documents_in(dl.docmind("handbook", file))
    assert documents == Documents("handbook", (Question("001", "What is a budget?", ("budget.md",)),))
    assert Comparison(runs=1, documents=documents).orders()[0].question.id == "001"


def test_the_page_on_own_documents_shows_questions_that_can_be_read(harbour: Path, tmp_path: Path) -> None:
    page = section_of("your-system.md", "Your own documents")
    (tmp_path / "q.jsonl").write_text(page.partition("```json\n")[2].partition("```")[0])
    first, second = documents_in(dl.docmind(harbour, tmp_path / "q.jsonl")).questions
    assert (first.gold_topics, second.id) == (("rules.md",), "fuel")


def test_the_same_questions_are_the_same_study_whatever_file_they_are_in(harbour: Path, tmp_path: Path) -> None:
    lines = QUESTIONS.read_text().splitlines(keepends=True)
    (tmp_path / "q.jsonl").write_text("".join(lines))
    (tmp_path / "fewer.jsonl").write_text("".join(lines[:-1]))
    ids = [
        comparison(harbour, documents=documents_in(dl.docmind(harbour, file))).study_id
        for file in (QUESTIONS, tmp_path / "q.jsonl", tmp_path / "fewer.jsonl")
    ]
    assert ids[0] == ids[1] != ids[2]
    assert Comparison().design().keys() == comparison(harbour).design().keys() - {"library", "questions"}


def test_a_cell_that_was_sent_to_another_process_says_all_that_it_needs(harbour: Path) -> None:
    asked = comparison(harbour, runs=1)
    (cell,) = cells_of(asked.orders(), simulated(asked, Settings()))
    sent = pickle.loads(pickle.dumps(cell))
    assert sent.system.of_process == cell.system.of_process
    assert Study.of(run_cell(sent).measured, {}).runs.equals(Study.of(run_cell(cell).measured, {}).runs)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"documents": "harbour"}, "questions: documents of your own come without; name a file with questions"),
        (
            {"documents": "no/such/folder"},
            r"a folder of \.md and \.txt files \(--documents\): check the path",
        ),
        ({"documents": "novels"}, "documents must be handbook, not 'novels'; or a folder"),
        ({"documents": "novels", "questions": QUESTIONS}, "not 'novels'; or a folder"),
        ({"documents": "handbook", "questions": QUESTIONS}, "line 1: the gold document 'rules.md' is not among"),
    ],
)
def test_what_cannot_be_put_together_is_refused_before_anything_starts(
    harbour: Path, monkeypatch: pytest.MonkeyPatch, words: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(harbour.parent)
    with pytest.raises(ConfigurationError, match=message):
        compare_by(**words, runs=1)


def test_a_folder_without_documents_is_refused_with_the_kinds_that_are_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"holds no document; the kinds that are read are \.md, \.txt"):
        dl.compare(dl.docmind(documents=tmp_path, questions=QUESTIONS))


@dataclasses.dataclass(frozen=True)
class Recorded:
    """What a replay looks at of a recording before it begins."""

    design: dict[str, Any]
    id: str = "live"


def replayed(of: Comparison, **asked: Any) -> Comparison:
    recorded = cast("Recording", Recorded(of.design()))
    return replayed_comparison(recorded, dl.docmind(**asked), Settings())


def test_a_replay_is_of_the_documents_and_questions_that_were_recorded(harbour: Path, tmp_path: Path) -> None:
    live = comparison(harbour, clock="wall")
    assert replayed(live, documents=harbour, questions=QUESTIONS).documents == live.documents
    fewer = tmp_path / "fewer.jsonl"
    fewer.write_text(QUESTIONS.read_text().partition("\n")[0])
    with pytest.raises(ConfigurationError, match="questions: they are not those of the recording"):
        replayed(live, documents=harbour, questions=fewer)
    with pytest.raises(ConfigurationError, match="documents: they are not those of the recording"):
        replayed(live)


def test_a_replay_of_the_lab_s_own_documents_takes_no_others(harbour: Path) -> None:
    live = comparison(harbour, documents=Documents("handbook"), clock="wall")
    assert replayed(live).documents == Documents("handbook")
    with pytest.raises(ConfigurationError, match="documents: the recording has settled it"):
        replayed(live, documents=harbour, questions=QUESTIONS)


def test_a_study_is_designed_over_them_and_does_not_say_where_they_are(harbour: Path) -> None:
    factors = {"alternative": "A,B", "latency_profile": "typical", "decision_timeout_s": 8.0}
    asked = {"documents": str(harbour), "questions": str(QUESTIONS), "repeats": 1, "factors": factors}
    design = StudyDesign.of(asked)
    assert str(harbour) not in json.dumps(design.to_dict())
    assert design.to_dict()["library"]["documents"] == 7
    assert all(item.documents == design.library for item in design.plan.combinations)
    made = dl.sweep(design)
    assert set(made.runs["question_id"]) == {comparison(harbour, runs=1).questions()[0][1].id}
    assert set(made.runs["alternative"]) == {"cooperative", "hard_timeout"}


def test_a_design_of_the_lab_s_own_documents_is_the_one_that_it_was() -> None:
    assert {"library", "questions"}.isdisjoint(StudyDesign.of({"repeats": 1}).to_dict())
