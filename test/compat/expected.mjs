// The tests of another project that are expected to fail, and the comparison of a run with them.
//
// The list is a document for users, with a line of code for each test after the paragraph that says why it fails:
//
//     Divan has no such thing: [differences](differences.md).
//
//         SUITE: FULL TITLE OF THE TEST
//         SUITE, sometimes: TITLE OF A TEST THAT DEPENDS ON TIMING

/** Returns the tests that a document lists, [{suite, sometimes, title}]. Throws if a suite is unknown, or a test is listed twice. */
export function parseExpected(markdown, suites) {
  const tests = []
  const seen = new Set()
  for (const [index, line] of markdown.split('\n').entries()) {
    const match = /^    ([a-z]+)(, sometimes)?: (.*\S)$/.exec(line)
    if (!match) continue
    const [, suite, sometimes, title] = match
    const fail = (message) => {
      throw new Error(`line ${index + 1}: ${message}`)
    }
    if (!suites.includes(suite)) fail(`there is no suite ${suite}`)
    const key = `${suite}: ${title}`
    if (seen.has(key)) fail('the test is listed twice')
    seen.add(key)
    tests.push({ suite, sometimes: sometimes !== undefined, title })
  }
  return tests
}

/**
 * Compares the results of a suite, [{title, state, error}], with the tests that are listed. Several tests may have one title: it
 * passes if all of them pass. Returns the numbers `passed`, `failed` and `pending`; `unexpected`: results that failed and are not
 * listed; and the tests that are listed, but passed (`passing`, without those that fail sometimes) or did not run (`missing`).
 */
export function compare(suite, results, expected) {
  const listed = expected.filter((test) => test.suite === suite)
  const failed = results.filter(({ state }) => state === 'failed')
  const count = (state) => results.filter((result) => result.state === state).length
  const titles = new Set(results.filter(({ state }) => state !== 'pending').map(({ title }) => title))
  const failing = new Set(failed.map(({ title }) => title))
  return {
    passed: count('passed'),
    failed: failed.length,
    pending: count('pending'),
    unexpected: failed.filter((result) => !listed.some(({ title }) => title === result.title)),
    passing: listed.filter(({ sometimes, title }) => !sometimes && titles.has(title) && !failing.has(title)),
    missing: listed.filter(({ title }) => !titles.has(title))
  }
}
