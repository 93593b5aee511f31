/** The temperature slider: the same stops in every figure, about twelve a decade, which Python keeps in `_temperature.py`. */
import { steps } from "./kit.js";

export const TEMPERATURES = [
  0.005, 0.006, 0.007, 0.008, 0.01, 0.0125, 0.014, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.125, 0.16, 0.2, 0.25,
  0.3, 0.4, 0.5, 0.7, 1,
];

/** The temperatures of a curve: the stops, and between two of them as many more points as make it smooth. */
export const FINE = TEMPERATURES.flatMap((low, i) => {
  const high = TEMPERATURES[i + 1] ?? low;
  return low === high ? [low] : [low, Math.sqrt(low * high)];
});

export const temperature = (say = (t) => `τ = ${t}`) => steps("temperature", { label: "Temperature", values: TEMPERATURES, say });
