// Logging in with a form: `/_session`
// (https://docs.couchdb.org/en/stable/api/server/authn.html#cookie-authentication).
#pragma once

#include "divan/api/call.h"
#include "divan/http/basic_auth.h"

namespace divan::api {

/// Returns true for POST /_session.
bool is_login(const Call& call);
/// Returns true for DELETE /_session.
bool is_logout(const Call& call);

/// The name and password in the body of a login. Throws bad_request, too_large (413) or bad_content_type
/// (415).
http::Credentials login_credentials(Call& call);

/// The user's roles as a JSON array, with `_admin` for administrators.
std::string roles_json(const User& user);

}  // namespace divan::api
