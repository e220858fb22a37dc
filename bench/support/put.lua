-- wrk's requests: PUT of a new document each time, 244 bytes. Arguments: the path of the database, and a
-- prefix of the ids.
local thread_count = 0
function setup(thread)
  thread:set('number', thread_count)
  thread_count = thread_count + 1
end

local count = 0
local path, filler
function init(arguments)
  path = arguments[1] .. '/' .. arguments[2] .. '-' .. number .. '-'
  filler = string.rep('x', 170)
  wrk.headers['Content-Type'] = 'application/json'
end

function request()
  count = count + 1
  local body = string.format('{"type":"order","n":%d,"tags":["a","bb"],"text":"%s"}', count, filler)
  return wrk.format('PUT', path .. count, nil, body)
end
