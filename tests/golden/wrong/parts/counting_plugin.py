from penstock.sdk import Config, SideOutput, plugin


@plugin("counting")
class Counting(SideOutput[Config]):
    """Counts nothing."""

    def observe(self, rows):
        pass
