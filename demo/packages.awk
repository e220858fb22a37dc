# Turns the Debian package index (apt-cache dumpavail) into JSON lines, one document a package.
#
#   apt-cache dumpavail | LC_ALL=C awk -f packages.awk
#
# Every field becomes a member: its name in lower case with underscores, its value a string, or a number where Debian
# says that it is one. Bytes that are not UTF-8 (there are none in Debian's own index) are left out.
BEGIN {
  for (i = 1; i < 32; i++) control[sprintf("%c", i)] = sprintf("\\u%04x", i)
  control["\n"] = "\\n"; control["\t"] = "\\t"; control["\r"] = "\\r"
  number["installed_size"] = number["size"] = 1
}

# A JSON string. Most values have nothing to be escaped.
function quoted(text,   out, i, c) {
  if (text ~ /[\\"\001-\037\177-\377]/) {
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    if (text ~ /[\001-\037]/) {
      out = ""
      for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        out = out (c in control ? control[c] : c)
      }
      text = out
    }
    if (text ~ /[\200-\377]/) text = utf8(text)
  }
  return "\"" text "\""
}

# Leaves out what is not a well-formed sequence of two to four bytes.
function utf8(text,   out) {
  out = ""
  while (match(text, /[\200-\377]/)) {
    out = out substr(text, 1, RSTART - 1)
    text = substr(text, RSTART)
    if (match(text, /^([\302-\337][\200-\277]|\340[\240-\277][\200-\277]|[\341-\354\356\357][\200-\277][\200-\277]|\355[\200-\237][\200-\277]|\360[\220-\277][\200-\277][\200-\277]|[\361-\363][\200-\277][\200-\277][\200-\277]|\364[\200-\217][\200-\277][\200-\277])/)) {
      out = out substr(text, 1, RLENGTH)
      text = substr(text, RLENGTH + 1)
    } else {
      text = substr(text, 2)
    }
  }
  return out text
}

function end_field() {
  if (name == "") return
  members = members "," quoted(name) ":" (name in number && value ~ /^[0-9]+$/ ? value + 0 : quoted(value))
  if (name == "package" || name == "version" || name == "architecture") key[name] = value
  name = ""
}

function end_package() {
  end_field()
  if (members != "") {
    print "{\"_id\":" quoted(key["package"] "_" key["version"] "_" key["architecture"]) members "}"
  }
  members = ""
  split("", key)
}

/^$/ { end_package(); next }
/^[ \t]/ { value = value "\n" substr($0, 2); next }
{
  end_field()
  colon = index($0, ":")
  if (colon == 0) next
  name = tolower(substr($0, 1, colon - 1))
  gsub(/-/, "_", name)
  value = substr($0, colon + 1)
  sub(/^[ \t]+/, "", value)
}
END { end_package() }
