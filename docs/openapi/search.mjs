import { any, anyObject, array, asJson, boolean, count, either, exactly, is, map, nullable, number, object, oneOf, open, operation, ref, string } from './schema.mjs'

export const tag = { name: 'Search', description: 'Full-text search and spatial queries.' }

const missing = { 404: 'The database or the index does not exist.' }
const texts = (description) => asJson(array(string), description)
const sort = (description) => asJson(either(string, array(string)), description)
const waits = {
  update: is(oneOf('true', 'false', 'lazy'), 'Whether to wait for the index to be built (`true`), or not; `lazy` builds it after the response.', 'true'),
  stale: is(oneOf('ok', 'update_after'), 'The older form of `update`.')
}
const searchQuery = {
  q: is(string, "The query, in Lucene's syntax."),
  query: is(string, 'As `q`.'),
  partition: is(string, 'The partition, for an index of partitions.'),
  limit: is(count, 'The most rows, at most 200; in partitioned databases, 2,000.', 25),
  bookmark: is(string, 'The `bookmark` of an earlier response: continues there.'),
  sort: sort('Fields: `"field<number>"`, `"-field<string>"`; `"relevance"` by default.'),
  include_docs: is(boolean, 'Rows have their documents.', false),
  include_fields: texts('The stored fields of the response; all by default.'),
  ...waits,
  stale: is(exactly('ok'), 'As `update` false.'),
  counts: texts('Fields whose values are counted.'),
  ranges: asJson(map(map(string)), 'Ranges of numbers that are counted, by field and name.'),
  drilldown: asJson(array(any), 'A field and its values: only documents that have one of them. Can be repeated.'),
  group_field: is(string, 'Rows are grouped by this field.'),
  group_by: is(string, 'As `group_field`, with the older names in the response.'),
  group_limit: is({ ...count, minimum: 1, maximum: 200 }, 'The most groups.', 10),
  group_sort: sort('The order of groups.'),
  highlight_fields: texts('Fields whose matches are highlighted.'),
  highlight_pre_tag: asJson(string, 'Before a match; `<em>` by default.'),
  highlight_post_tag: asJson(string, 'After a match; `</em>` by default.'),
  highlight_number: is({ ...count, minimum: 1, maximum: 100 }, 'The most fragments of a field.', 1),
  highlight_size: is({ ...count, minimum: 1, maximum: 10000 }, 'Size of a fragment.', 100)
}
const geoQuery = {
  bbox: is(string, 'A box: west, south, east, north, with commas.'),
  g: is(string, 'A geometry in WKT or GeoJSON.'),
  lat: is(number, 'Latitude of a centre.'),
  lon: is(number, 'Longitude of a centre.'),
  radius: is(number, 'A circle around the centre, in metres.'),
  rangex: is(number, 'An ellipse around the centre: its radius from west to east, in metres.'),
  rangey: is(number, 'Its radius from south to north, in metres.'),
  relation: is(
    oneOf('contains', 'covered_by', 'covers', 'crosses', 'disjoint', 'equals', 'intersects', 'overlaps', 'touches', 'within'),
    'The relation of what is found to the geometry.',
    'intersects'
  ),
  nearest: is(boolean, 'The nearest first.', false),
  limit: is({ ...count, maximum: 200 }, 'The most rows.', 100),
  skip: is(count, 'Rows that are skipped.', 0),
  include_docs: is(boolean, 'Rows have their documents.', false),
  format: is(oneOf('view', 'geojson', 'legacy', 'application/vnd.geo+json'), 'Of the response: `view`, or GeoJSON.', 'view'),
  ...waits,
  bookmark: is(string, 'The `bookmark` of an earlier response: continues there.')
}
const inBody = (parameters) =>
  open(Object.fromEntries(Object.keys(parameters).map((name) => [name + '?', is(any, parameters[name].description)])))

const search = {
  get: operation('Search', { access: 'member', query: searchQuery, ok: { 200: ['What was found.', ref('SearchResult')] }, errors: missing }),
  post: operation('Search, with parameters in the body', {
    access: 'member',
    query: { partition: searchQuery.partition },
    body: inBody(searchQuery),
    needsBody: true,
    ok: { 200: ['What was found.', ref('SearchResult')] },
    errors: missing
  })
}
const geoResult = { 200: ['What was found.', either(ref('GeoRows'), ref('GeoFeatures'))] }

export const paths = {
  '/{db}/_design/{ddoc}/_search/{index}': search,
  '/{db}/_partition/{partition}/_design/{ddoc}/_search/{index}': search,
  '/{db}/_design/{ddoc}/_search_info/{index}': {
    get: operation('Describe an index of full text', {
      access: 'member',
      ok: {
        200: [
          'The index.',
          object({
            name: string,
            search_index: object({ disk_size: count, doc_count: count, doc_del_count: exactly(0), updates_pending: count }),
            left_out: ref('LeftOut')
          })
        ]
      },
      errors: missing
    })
  },
  '/{db}/_design/{ddoc}/_search_disk_size/{index}': {
    get: operation('Show the size of an index of full text', {
      access: 'member',
      ok: { 200: ['The size.', object({ name: string, search_index: object({ disk_size: count }) })] },
      errors: missing
    })
  },
  '/{db}/_design/{ddoc}/_geo/{index}': {
    get: operation('Find geometries', { access: 'member', query: geoQuery, ok: geoResult, errors: missing }),
    post: operation('Find geometries, with parameters in the body', {
      access: 'member',
      query: geoQuery,
      body: inBody(geoQuery),
      needsBody: true,
      ok: geoResult,
      errors: missing
    })
  },
  '/{db}/_design/{ddoc}/_geo_info/{index}': {
    get: operation('Describe a spatial index', {
      access: 'member',
      ok: {
        200: [
          'The index.',
          object({
            name: string,
            geo_index: object({ doc_count: count, disk_size: count, data_size: count }),
            updates_pending: count,
            left_out: ref('LeftOut')
          })
        ]
      },
      errors: missing
    })
  }
}

const rows = array(ref('SearchRow'))

export const schemas = {
  SearchRow: object({
    id: string,
    order: is(array(any), 'The values that the rows are sorted by.'),
    fields: is(anyObject, 'The stored fields.'),
    'highlights?': map(array(string)),
    'doc?': nullable(ref('Document'))
  }),
  SearchResult: object({
    'total_rows?': count,
    'bookmark?': string,
    'rows?': rows,
    'total_hits?': count,
    'total_grouped_hits?': count,
    'groups?': array(object({ by: any, 'total_rows?': count, 'rows?': rows, 'total_hits?': count, 'hits?': rows })),
    'counts?': map(map(count)),
    'ranges?': map(map(count))
  }),
  Geometry: is(open({ type: string }), 'A geometry of GeoJSON.'),
  GeoRows: object({
    bookmark: string,
    rows: array(
      object({ id: string, rev: ref('Revision'), geometry: ref('Geometry'), 'distance?': is(number, 'Metres.'), 'doc?': nullable(ref('Document')) })
    )
  }),
  GeoFeatures: is(
    object({
      bookmark: string,
      type: exactly('FeatureCollection'),
      features: array(
        object({
          _id: string,
          _rev: ref('Revision'),
          type: exactly('Feature'),
          properties: object({}),
          geometry: ref('Geometry'),
          'distance?': number,
          'doc?': nullable(ref('Document'))
        })
      )
    }),
    'GeoJSON.'
  )
}
