// Builds of indexes.
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The job of the index with this signature, when it has ended.
export async function endOfBuild(server, signature) {
  for (;;) {
    const { jobs } = await server.ask('GET', '/_jobs/views/_list');
    const job = jobs.find((candidate) => candidate.id.startsWith(signature));
    if (job?.state === 'finished') return job;
    if (job?.state === 'failed') throw new Error(JSON.stringify(job));
    await pause(100);
  }
}
