// The random numbers of torch.rand on a CPU, so that a seed draws the same tokens here as in Python.

const LENGTH = 624;
const AHEAD = 397;

/** Uniform numbers in [0, 1) with 53 bits each, from the Mersenne Twister (Matsumoto and Nishimura 1998, MT19937). */
export function makeUniform(seed) {
  const state = new Uint32Array(LENGTH);
  state[0] = seed;
  for (let i = 1; i < LENGTH; i += 1) state[i] = Math.imul(1812433253, state[i - 1] ^ (state[i - 1] >>> 30)) + i;
  let next = LENGTH;

  function twist() {
    for (let i = 0; i < LENGTH; i += 1) {
      const bits = (state[i] & 0x80000000) | (state[(i + 1) % LENGTH] & 0x7fffffff);
      state[i] = state[(i + AHEAD) % LENGTH] ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
    }
    next = 0;
  }

  function word() {
    if (next === LENGTH) twist();
    let bits = state[next];
    next += 1;
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    return (bits ^ (bits >>> 18)) >>> 0;
  }

  return () => {
    const high = word() & 0x1fffff; // torch keeps the lower 53 of 64 bits
    return (high * 2 ** 32 + word()) / 2 ** 53;
  };
}
