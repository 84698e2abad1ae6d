"""What is certified of a release that is computed from another one holds for that one too."""

from __future__ import annotations

from bmpaudit.proof import Certificate, CertifiedExposure


def certified(source: str, members: list[float], non_members: list[float]) -> CertifiedExposure:
    of_members, of_others = (
        tuple(Certificate(certainty, names, names, 1.0, 9) for certainty, names in zip((0.9, 0.99), side, strict=True))
        for side in (members, non_members)
    )
    return CertifiedExposure(of_members, of_others, 0.99, num_fitting=10, num_challenged=20, source=source)


def test_of_each_certainty_the_certificate_of_more_names_is_kept() -> None:
    scores, labels = certified("student", [20.0, 5.0], [7.0, 0.0]), certified("labels", [30.0, 4.0], [7.0, 1.5])
    joined = scores.joined(labels)
    assert [each.names for each in joined.members] == [30.0, 5.0]
    assert [each.names for each in joined.non_members] == [7.0, 1.5]
    assert joined.source == "student; labels"
    assert scores.joined(certified("labels", [20.0, 4.0], [0.0, 0.0])) is scores
