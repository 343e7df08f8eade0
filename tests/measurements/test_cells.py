"""What captions of tables say."""

from results_by_hand import changed, make_result

from probes.measurements.table_cells import interval_note


def test_the_note_says_what_intervals_are_over_or_that_there_are_none():
    few, enough = make_result(clusters=19), make_result(clusters=20)
    assert interval_note([few]) == "No intervals: fewer than 20 test sentences."
    said = "± half a 95 % interval over test sentences; training variation is not included."
    assert interval_note([enough]) == interval_note([few, enough]) == said
    documents = changed(enough, "examples", resampled="documents")
    assert "over test documents or sentences;" in interval_note([documents, enough])
