"""How a claim is tested: models of many seeds, an interval, one rule for verdicts, a report."""
