"""A few seconds of what `make soak` does for hours, without a broker that goes away: others use it too."""

import pytest

from soak.course import Course, Trouble, last_line

pytestmark = pytest.mark.stack


def test_kills_zombies_and_s3_faults_lose_and_double_nothing(stack, tmp_path):
    trouble = Trouble(kill_s=4, stop_s=5, stopped_s=(1, 2), s3_rate=0.1)
    result = Course(stack, tmp_path, 8, trouble, ["wallclock"], seed=3).run()
    assert result.failed == []
    assert result.records > 10_000
    assert sum(each.kills for each in result.members) >= 1
    assert sum(each.stops for each in result.members) >= 1
    assert all(each.is_clean for each in result.audits.values()), result.audits
    said = "".join(log.read_text() for log in tmp_path.rglob("*.log"))
    assert "was taken over by another instance on host" in said
    assert last_line(result).endswith(" 0 lost, 0 doubled")
