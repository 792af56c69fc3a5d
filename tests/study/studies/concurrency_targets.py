"""What stands for the models in a process of the study `concurrency`."""

import os
import time


class Runs:
    def __init__(self, order):
        self.order = order

    def run(self):
        return {os.environ["PIPELINE"]: time.perf_counter_ns()}

    def arm(self):
        return self.order.arm
