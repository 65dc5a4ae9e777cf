"""One shard of a batch for each Ray task: ray_batch.py SHARDS LIST DIR [arguments of `stereod batch`]"""

import subprocess
import sys

import ray


class MayPass(Exception):
    """A failure that a retry may help against."""


# With a GPU in each task: num_gpus=1.
@ray.remote(num_cpus=1, max_retries=3, retry_exceptions=[MayPass])
def shard(number: int, count: int, arguments: list[str]) -> tuple[int, int]:
    command = ["stereod", "batch", *arguments, "--shard", f"{number}/{count}"]
    status = subprocess.run(command).returncode
    if status not in (0, 2, 3):
        raise MayPass(f"shard {number} of {count} ended with {status}")
    return number, status


def main() -> int:
    count, inputs, results, *more = sys.argv[1:]
    ray.init(log_to_driver=True)
    arguments = [inputs, "--out", results, *more]
    shards = [shard.remote(number, int(count), arguments) for number in range(1, int(count) + 1)]
    worst = 0
    for task in shards:
        try:
            number, status = ray.get(task)
            print(f"shard {number}: {status}")
        except MayPass as failure:
            print(failure)
            status = 1
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
