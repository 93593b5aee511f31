"""What is right for several processes, played through in one, is what two real processes with gloo compute."""

import os
import subprocess
import sys
import time
from datetime import timedelta

import pytest
import torch

from losslab.mistakes import get

WORLD = 2


def given():
    """Embeddings (W, b, d) of queries, positives and negatives; texts (W, b, k) of two sides; weights (k, d)."""
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(3, WORLD, 2, 3, generator=generator, dtype=torch.float64)
    texts = torch.randn(2, WORLD, 2, 4, generator=generator, dtype=torch.float64)
    weights = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    guide = torch.rand(WORLD, 2, 2 * WORLD, generator=generator, dtype=torch.float64)
    return embeddings, texts, weights, guide


def run_on(rank, store, out):
    """One of the two processes."""
    from torch import distributed
    from torch.distributed.nn.functional import all_gather
    from torch.nn.parallel import DistributedDataParallel

    distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD, timeout=timedelta(seconds=60)
    )
    embeddings, texts, weights, guide = given()

    own = embeddings[:, rank].clone().requires_grad_()  # all that this process has
    positives, negatives = (torch.stack(all_gather(side.contiguous())) for side in own[1:])
    loss = get("gather_layout").right(own[0], positives, negatives, rank, 0.5)
    (gradient,) = torch.autograd.grad(loss, own)  # what the other process's loss teaches these documents included

    filtered = get("gist_rank_offset").right(guide[rank] / 0.05, guide[rank], rank).mean()
    parts = [torch.zeros_like(filtered) for _ in range(WORLD)]
    distributed.all_gather(parts, filtered)

    model = torch.nn.Linear(4, 3, bias=False, dtype=torch.float64)
    model.weight.data.copy_(weights.T)
    model = DistributedDataParallel(model)
    sides = []
    for mine in model(texts[:, rank]):
        gathered = [torch.zeros_like(mine) for _ in range(WORLD)]
        distributed.all_gather(gathered, mine.detach())
        gathered[rank] = mine  # the only one with a gradient
        sides.append(torch.cat(gathered))
    scores = sides[0] @ sides[1].T
    (WORLD * (scores.logsumexp(1) - scores.diagonal()).mean()).backward()

    torch.save((loss.detach(), gradient, torch.stack(parts), model.module.weight.grad.T), f"{out}.{rank}")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """What each of two processes came to."""
    folder = tmp_path_factory.mktemp("gloo")
    environment = os.environ | ({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {})
    running = []
    for rank in range(WORLD):
        command = [sys.executable, __file__, str(rank), str(folder / "store"), str(folder / "out")]
        with (folder / f"error.{rank}").open("w") as error:
            running.append(subprocess.Popen(command, stderr=error, env=environment))
    until = time.monotonic() + 120
    try:  # one that fails leaves the other waiting for it
        while any(process.poll() is None for process in running) and time.monotonic() < until:
            if any(process.poll() for process in running):
                break
            time.sleep(0.1)
    finally:
        for process in running:
            process.kill()
            process.wait()
    said = "".join(path.read_text() for path in sorted(folder.glob("error.*")))
    assert all((folder / f"out.{rank}").exists() for rank in range(WORLD)), f"it did not finish: {said}"
    return [torch.load(folder / f"out.{rank}") for rank in range(WORLD)]


def test_documents_gathered_by_role(processes):
    embeddings = given()[0].requires_grad_()
    right = get("gather_layout").right
    losses = torch.stack([right(embeddings[0, rank], *embeddings[1:], rank, 0.5) for rank in range(WORLD)])
    (gradients,) = torch.autograd.grad(losses.sum(), embeddings)
    for rank, (loss, gradient, *_) in enumerate(processes):
        assert loss.item() == pytest.approx(losses[rank].item(), rel=1e-12)
        torch.testing.assert_close(gradient, gradients[:, rank], rtol=1e-10, atol=1e-12)


def test_a_guide_that_spares_each_process_its_own(processes):
    guide = given()[3]
    right = [get("gist_rank_offset").right(guide[rank] / 0.05, guide[rank], rank).mean() for rank in range(WORLD)]
    for _, _, parts, _ in processes:
        torch.testing.assert_close(parts, torch.stack(right), rtol=1e-12, atol=0)


def test_a_loss_times_the_number_of_processes(processes):
    _, texts, weights, _ = given()
    right = get("ddp_mean_world_size").right(weights.requires_grad_(), *texts)
    for *_, gradient in processes:
        torch.testing.assert_close(gradient, right, rtol=1e-10, atol=1e-12)


if __name__ == "__main__":
    run_on(int(sys.argv[1]), *sys.argv[2:])
