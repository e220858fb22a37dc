// Adds jobs in concurrent batches.

export const ADD = { batch: 1000, connections: 4 };

// Calls `add` with the sizes of batches until there are `count` jobs.
export async function inBatches(count, add) {
  let next = 0;
  const adder = async () => {
    while (next < count) {
      const size = Math.min(ADD.batch, count - next);
      next += size;
      await add(size);
    }
  };
  await Promise.all(Array.from({ length: ADD.connections }, adder));
}
