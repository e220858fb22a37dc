// A mocha reporter that appends a line of JSON to the file DIVAN_COMPAT_REPORT whenever it knows the state of a test:
// {id, title, state: passed | failed | pending, error}. A later line with the same id replaces an earlier one. The last line is
// {ended: true}.
//
// PouchDB's suites fail in a hook after the test if a promise was rejected that nobody waited for, and mocha skips everything
// that follows a failed hook. Here such a test fails, and the next one runs.
const fs = require('fs')

// Errors of PouchDB that are answers of a server say in members what is wrong, not in a message.
const describe = (error) =>
  error.reason ? `${error.status} ${error.name}: ${error.reason}` : String(error.stack || error.message || error)

module.exports = class Reporter {
  #report = process.env.DIVAN_COMPAT_REPORT
  #ids = new Map()

  constructor(runner) {
    this.#continueAfterFailedHooks(runner.suite)
    runner.on('pass', (test) => this.#write(test, 'passed'))
    runner.on('pending', (test) => this.#write(test, 'pending'))
    runner.on('fail', (test, error) => this.#write(test, 'failed', error))
    runner.on('end', () => this.#append({ ended: true }))
  }

  #continueAfterFailedHooks(suite) {
    const reporter = this
    for (const hook of suite._afterEach) {
      const body = hook.fn
      hook.fn = function (done) {
        body.call(this, (error) => {
          if (error) reporter.#write(this.currentTest, 'failed', error)
          done()
        })
      }
    }
  }

  #write(test, state, error) {
    if (!this.#ids.has(test)) this.#ids.set(test, this.#ids.size)
    this.#append({ id: this.#ids.get(test), title: test.fullTitle(), state, error: error && describe(error) })
  }

  #append(line) {
    fs.appendFileSync(this.#report, JSON.stringify(line) + '\n')
  }
}
