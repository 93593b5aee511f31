/**
 * The score matrix as pixels, computed where it disturbs nobody: in a worker made from the text of `engine`, or, where no worker
 * can be made, on the page itself in idle slices. Either way the newest wish wins and the page never waits.
 */

/**
 * Everything that runs off the main thread, in one function that needs nothing around it: its text becomes the worker.
 *
 * Cosines are kept for every offered dimension, tile by tile, for a sum over the first 8 entries is a step of the sum over the
 * first 16. Tiles are computed when first wanted, and the rest while nothing is; then a change costs a softmax and the colours.
 * @param {{postMessage: Function, onmessage: Function}} port
 * @param {(slice: () => void) => void} later  runs a slice after whatever else is waiting
 * @param {number} budget  ms that a slice may take
 */
export function engine(port, later, budget) {
  const TILE = 64, sources = new Map();
  let wanted = null, running = false, work = null;

  /** 1 / length of the first so many entries of each row, for every offered dimension. */
  function inverse(rows, n, d, dims) {
    const out = dims.map(() => new Float64Array(n));
    for (let i = 0; i < n; i++) {
      for (let t = 0, k = 0, sum = 0; t < dims.length; t++) {
        for (; k < dims[t]; k++) sum += rows[i * d + k] * rows[i * d + k];
        out[t][i] = 1 / Math.sqrt(sum);
      }
    }
    return out;
  }

  function load({ name, n, d, dims, queries, documents }) {
    const tiles = Math.ceil(n / TILE);
    const blank = () => dims.map(() => new Float32Array(n * n));
    sources.set(name, {
      n, d, dims, queries, documents, tiles, cosines: null, blank, ready: new Uint8Array(tiles * tiles),
      ours: inverse(queries, n, d, dims), theirs: inverse(documents, n, d, dims),
    });
  }

  /** Cosines of a tile's queries with its documents, for every offered dimension. */
  function compute({ n, d, dims, queries, documents, cosines, ours, theirs }, a, b) {
    const rows = Math.min(n, (a + 1) * TILE), columns = Math.min(n, (b + 1) * TILE);
    for (let i = a * TILE; i < rows; i++) {
      for (let j = b * TILE; j < columns; j++) {
        const q = i * d, p = j * d;
        for (let t = 0, k = 0, dot = 0; t < dims.length; t++) {
          for (const end = dims[t]; k < end; k++) dot = (dot + queries[q + k] * documents[p + k]) | 0;
          cosines[t][i * n + j] = dot * ours[t][i] * theirs[t][j];
        }
      }
    }
  }

  /** Computes the first tile that is not there yet among those of a batch of `width`; false if all are. */
  function advance(source, width) {
    const edge = Math.ceil(width / TILE);
    source.cosines ??= source.blank();
    for (let ring = 0; ring < edge; ring++) {
      for (let step = 0; step <= 2 * ring; step++) {
        const a = Math.min(step, ring), b = ring - Math.max(0, step - ring), at = a * source.tiles + b;
        if (source.ready[at]) continue;
        compute(source, a, b);
        source.ready[at] = 1;
        return true;
      }
    }
    return false;
  }

  /** Loss and picture of a batch. `shades` holds 256 colours from the lowest value to the highest, as 32-bit pixels. */
  function* draw(wish) {
    const { id, width, dimension, temperature, share, side, shades } = wish;
    const { n, dims, cosines } = sources.get(wish.source), scores = cosines[dims.indexOf(dimension)];
    const sums = new Float64Array(width), logarithm = Math.log(width);
    let loss = 0, correct = 0;
    for (let i = 0; i < width; i++) {
      const row = scores.subarray(i * n, i * n + width);
      let most = -Infinity, sum = 0, above = 0;
      for (let j = 0; j < width; j++) if (row[j] > most) most = row[j];
      for (let j = 0; j < width; j++) sum += Math.exp((row[j] - most) / temperature);
      for (let j = 0; j < width; j++) if (row[j] > row[i]) above += 1;
      sums[i] = most / temperature + Math.log(sum);
      loss += sums[i] - row[i] / temperature;
      if (!above) correct += 1;
      if (i % 32 === 31) yield;
    }
    // Where there are more cells than pixels, each cell belongs to one pixel, and a pixel shows the highest of its cells.
    const pixels = new Uint32Array(side * side), first = new Int32Array(side), after = new Int32Array(side);
    for (let x = 0; x < side; x++) {
      first[x] = Math.floor((x * width) / side);
      after[x] = Math.max(first[x] + 1, Math.floor(((x + 1) * width) / side));
    }
    const column = new Float32Array(width);
    let top = -1, last = -1;
    for (let y = 0; y < side; y++) {
      const at = y * side;
      if (first[y] === top && after[y] === last) {
        pixels.copyWithin(at, at - side, at);
        continue;
      }
      [top, last] = [first[y], after[y]];
      column.fill(-Infinity);
      for (let i = top; i < last; i++) {
        const start = i * n;
        if (share) {
          // ln(p · B) / ln B: 0 is the even share 1/B, 1 is all of the softmax
          const scale = 1 / temperature / logarithm, shift = (logarithm - sums[i]) / logarithm;
          for (let j = 0; j < width; j++) {
            const value = scores[start + j] * scale + shift;
            if (value > column[j]) column[j] = value;
          }
        } else {
          for (let j = 0; j < width; j++) if (scores[start + j] > column[j]) column[j] = scores[start + j];
        }
      }
      const low = share ? 0 : -1, scale = share ? 255 : 127.5;
      for (let x = 0; x < side; x++) {
        let most = -Infinity;
        for (let j = first[x]; j < after[x]; j++) if (column[j] > most) most = column[j];
        const shade = (most - low) * scale + 0.5;
        pixels[at + x] = shades[shade < 0 ? 0 : shade > 255 ? 255 : shade | 0];
      }
      if (y % 32 === 31) yield;
    }
    const done = { id, side, loss: loss / width, correct: correct / width, pixels: pixels.buffer };
    port.postMessage(done, [pixels.buffer]);
  }

  function* working() {
    for (;;) {
      const wish = wanted;
      if (wish) {
        while (wanted === wish && advance(sources.get(wish.source), wish.width)) yield;
        if (wanted !== wish) continue; // a newer wish makes tiles of an older one idle; a drawing that has begun is finished
        wanted = null;
        yield* draw(wish);
      } else {
        let busy = false;
        for (const source of sources.values()) busy ||= advance(source, source.n);
        if (!busy) return;
        yield;
      }
    }
  }

  function slice() {
    const end = performance.now() + budget;
    work ??= working();
    do {
      if (work.next().done) {
        work = null;
        running = false;
        return;
      }
    } while (performance.now() < end);
    later(slice);
  }

  port.onmessage = ({ data }) => {
    if (data.name) load(data);
    else wanted = data;
    if (running) return;
    running = true;
    later(slice);
  };
}

/** The engine on the page itself: each slice waits until the page is idle. */
function onPage(answer) {
  const port = { postMessage: (data) => answer(data), onmessage: null };
  const idle = globalThis.requestIdleCallback ?? ((slice) => setTimeout(slice, 4));
  let on = true;
  engine(port, (slice) => idle(() => on && slice(), { timeout: 100 }), 6);
  return { post: (data) => port.onmessage({ data }), end: () => (on = false) };
}

/** The engine in a worker whose script is its own text, so that pages from file:// and notebooks need no address for it. */
function inWorker(answer, fail) {
  const script = `"use strict";(${engine})(self, (() => {
    const { port1, port2 } = new MessageChannel();
    let slice;
    port1.onmessage = () => slice();
    return (next) => ((slice = next), port2.postMessage(0));
  })(), 10);`;
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  try {
    const worker = new Worker(address);
    worker.onmessage = ({ data }) => answer(data);
    worker.onerror = (event) => (event.preventDefault(), fail());
    return { post: (data) => worker.postMessage(data), end: () => (worker.terminate(), URL.revokeObjectURL(address)) };
  } catch (error) {
    URL.revokeObjectURL(address);
    throw error;
  }
}

/**
 * Starts the engine. `wish` asks for a picture; `answer` gets the loss and the pixels of the newest wishes.
 * @param {object[]} sources  what `engine` loads: name, n, d, dims, queries, documents
 * @param {(done: {id: string, side: number, loss: number, correct: number, pixels: ArrayBuffer}) => void} answer
 */
export function startEngine(sources, answer) {
  let engineNow, newest = null, timer = 0;
  const begin = (made) => {
    engineNow = made;
    for (const source of sources) made.post(source);
    if (newest) made.post(newest);
  };
  const retreat = () => (engineNow?.end(), begin(onPage(answer))); // some hosts forbid workers, and say so only later
  try {
    begin(inWorker(answer, retreat));
  } catch {
    retreat();
  }
  const send = () => ((timer = 0), engineNow.post(newest));
  return {
    wish(wish) {
      newest = wish;
      timer ||= setTimeout(send); // after the event that wished: waking a worker may take the page's own core
    },
    end: () => (clearTimeout(timer), engineNow.end()),
  };
}
