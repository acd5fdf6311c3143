"""What a reader makes of files: `python reader_answers.py < jobs > answers`, both JSON, a row per file.

The reader is the `orchestrion` on the path, of any version; of it only what applications use is called.

job:    `file`, `policy` (a keys file, or nothing), `calls` (rows of `golden_calls.py`)
answer: `results` of the calls, or `error` (its class) and `message`
"""

import json
import sys
from typing import Any

import numpy as np
from golden_calls import array, value

from orchestrion import schema, vm


def answer(job: dict[str, Any]) -> dict[str, Any]:
    policy = {"policy": job["policy"]} if job["policy"] else {}
    try:
        program = vm.load(job["file"], device="reference", **policy)
        results = [program[row["function"]](*map(value, row["arguments"])) for row in job["calls"]]
    except Exception as error:  # which one it is, is the answer
        return {"error": type(error).__name__, "message": str(error)}
    program.close()
    rows = [row if isinstance(row, tuple) else (row,) for row in results]
    return {"results": [[array(x) if isinstance(x, np.ndarray) else x for x in row] for row in rows]}


if __name__ == "__main__":
    answers = [answer(job) for job in json.load(sys.stdin)]
    loaded = sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)
    folders = [*vm.__path__, *schema.__path__]
    json.dump({"answers": answers, "loaded": loaded, "folders": folders}, sys.stdout)
