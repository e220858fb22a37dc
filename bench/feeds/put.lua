-- For wrk: new documents in the database that is named after --, as many a request as the number behind it says;
-- with 1 a PUT of each, otherwise _bulk_docs.
local n, batch, path = 0, 1, ""
local text = '"type":"order","text":"' .. string.rep("x", 200) .. '"}'

function init(args)
  path, batch = "/" .. args[1] .. "/", tonumber(args[2])
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  if batch == 1 then
    n = n + 1
    return wrk.format("PUT", path .. "doc-" .. n, nil, "{" .. text)
  end
  local documents = {}
  for i = 1, batch do
    n = n + 1
    documents[i] = '{"_id":"doc-' .. n .. '",' .. text
  end
  return wrk.format("POST", path .. "_bulk_docs", nil, '{"docs":[' .. table.concat(documents, ",") .. "]}")
end
