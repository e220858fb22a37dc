// W3C Trace Context (https://www.w3.org/TR/trace-context/#traceparent-header): enqueue() sets a job's trace,
// and its handler reads it. It is stored as the member `traceparent` of the job's data, as in CloudEvents.
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

const isObject = (data) => typeof data === 'object' && data !== null && !Array.isArray(data)

/** The data of a job with the trace. */
export function withTrace(data, traceparent) {
  if (traceparent === undefined || traceparent === null) return data
  if (!FORM.test(traceparent)) throw new TypeError(`traceparent is ${JSON.stringify(traceparent)}; expected the form of W3C Trace Context`)
  if (data !== undefined && !isObject(data)) throw new TypeError('the data of a job with a traceparent must be an object')
  return { ...data, traceparent }
}

/** The trace in the data of a job; undefined if it is missing or malformed. */
export function traceOf(data) {
  const given = isObject(data) ? data.traceparent : undefined
  return typeof given === 'string' && FORM.test(given) ? given : undefined
}
