package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
)

func TestAuth(t *testing.T) {
	all := &Auth{
		Type: "client_credentials", CredentialID: "c", Issuer: "https://as", AuthorizationURL: "https://as/a",
		TokenURL:  "http://127.0.0.1:1/t",
		DeviceURL: "https://as/d", RegistrationURL: "https://as/r", ClientID: "id", ClientSecret: "s3cret",
		ClientMetadataURL: "https://me/c.json",
		Scopes:            []string{"a", "b:c"}, Resource: "api://x", RedirectURI: "http://localhost:3118/callback",
		CallbackPort: 3118,
		CallbackPath: "/callback", Flow: "device",
	}
	for members, want := range map[string]*Auth{
		`"x": 1`:                      nil,
		`"auth": null, "oauth": null`: nil,
		`"auth": {}`:                  {},
		`"auth": true`:                {},
		`"auth": false`:               {Type: "none"},
		`"auth": "none"`:              {Type: "none"},
		`"auth": "apikey"`:            {Type: "apikey"},
		`"oauth": {}`:                 {Type: "oauth"},
		`"oauth": true`:               {Type: "oauth"},
		`"oauth": false`:              {Type: "none"},
		`"auth": {"type": "oauth", "credentialId": "c"}`: {Type: "oauth",
			CredentialID: "c"},
		`"auth": {"type": "apikey"}, "oauth": {"clientId": "id", "callback_port": "8080"}`: {Type: "apikey",
			ClientID: "id", CallbackPort: 8080},
		`"oauth": {"clientId": "two", "tokenUrl": "https://o"}, "auth": {"client_id": "one"}`: {Type: "oauth",
			ClientID: "one", TokenURL: "https://o"},
		`"auth": {"type": "oauth"}, "oauth": false`: {Type: "oauth"},
		`"auth": {"client_id": "one"}, "oauth": false`: {Type: "none",
			ClientID: "one"},
		`"auth": false, "oauth": {"clientId": "two"}`: {Type: "none",
			ClientID: "two"},
		`"auth": {"client_id": "a", "clientId": "b", "scope": null, "scopes": []}`: {ClientID: "b",
			Scopes: []string{}},
		`"auth": {"type": "enterprise", "clientId": "c", "privateKey": "k", "idpIssuer": "https://idp", "idpClientId": "i", "idpClientSecret": "s", "idToken": "t"}`: {
			Type: "enterprise", ClientID: "c", PrivateKey: "k", IDPIssuer: "https://idp", IDPClientID: "i",
			IDPClientSecret: "s", IDToken: "t"},
		`"auth": {"type": "workload", "client_id": "c", "id_token": "${AS}"}`: {Type: "workload", ClientID: "c",
			IDToken: "https://as"},
		`"auth": {"accept_endpoints": ["https://a.example/", "${AS}:443"]}`: {
			AcceptEndpoints: drawbridge.SignInEndpoints{Page: "https://a.example", Token: "https://as"}},
		`"auth": {"acceptEndpoints": "https://a.example, http://127.0.0.1:1"}`: {
			AcceptEndpoints: drawbridge.SignInEndpoints{Page: "https://a.example", Token: "http://127.0.0.1:1"}},
		`"auth": {"callbackPath": "back", "token_url": "${AS}/t"}`: {CallbackPath: "/back",
			TokenURL: "https://as/t"},
		`"auth": {"type": "client_credentials", "credential_id": "c", "issuer": "https://as", "authorization_url": "https://as/a",
			"token_url": "http://127.0.0.1:1/t", "device_url": "https://as/d", "registration_url": "https://as/r", "client_id": "id",
			"client_secret": "s3cret", "client_metadata_url": "https://me/c.json", "scopes": ["a", "b:c"], "resource": "api://x",
			"redirect_uri": "http://localhost:3118/callback", "callback_port": 3118, "callback_path": "/callback", "flow": "device"}`: all,
		`"oauth": {"type": "client_credentials", "credentialId": "c", "issuer": "https://as", "authorizationUrl": "https://as/a",
			"tokenUrl": "http://127.0.0.1:1/t", "deviceUrl": "https://as/d", "registrationUrl": "https://as/r", "clientId": "id",
			"clientSecret": "s3cret", "clientMetadataUrl": "https://me/c.json", "scope": "a  b:c", "resource": "api://x",
			"redirectUri": "http://localhost:3118/callback", "callbackPort": 3118, "callbackPath": "callback", "flow": "device"}`: all,
	} {
		w := newWorld(t, nil)
		w.env["AS"] = "https://as"
		row, _ := rowOf(t, w, `{"url": "https://h", `+members+`}`)
		wantDiff(t, members, want, row.Auth)
		if row.Phase != drawbridge.Idle {
			t.Errorf("%s: %s", members, row.Reason)
		}
	}
}

func TestRefusedAuth(t *testing.T) {
	const noEndpoints = `"auth.accept_endpoints" must name two origins, the sign-in page's and the token endpoint's`
	const noURL = ` in "auth" must be an http or https URL with a host`
	for members, want := range map[string]string{
		`"auth": {"accept_endpoints": "https://a.example"}`:                          noEndpoints,
		`"auth": {"accept_endpoints": ["https://a.example", "https://b.example/x"]}`: noEndpoints,
		`"auth": {"accept_endpoints": ["https://a.example", "https://u@b.example"]}`: noEndpoints,
		`"auth": {"accept_endpoints": ["https://a.example", "b.example"]}`:           noEndpoints,
		`"auth": {"accept_endpoints": true}`:                                         noEndpoints,
		`"auth": {"accept_endpoints": ["https://a", "https://b", "https://c"]}`:      noEndpoints,
		`"auth": "basic"`: `"auth" must be "oauth", "client_credentials", "enterprise", "workload", "apikey" or "none"`,
		`"auth": {"type": "enterprise", "client_id": "c", "idp_client_id": "i", "id_token": "s3cret"}`: `"auth" of the type "enterprise" needs "idp_issuer", "idp_client_id", "id_token" and "client_id"`,
		`"auth": {"type": "workload", "id_token": "s3cret"}`:                                           `"auth" of the type "workload" needs "id_token" and "client_id"`,
		`"auth": {"private_key": "s3cret"}`:                                                            `"private_key" in "auth" is for the types "client_credentials", "enterprise" and "workload"`,
		`"auth": {"idp_issuer": "idp"}`: `"idp_issuer"` +
			noURL,
		`"auth": ["oauth"]`:                `"auth" must be an object, or false`,
		`"auth": {"type": "basic"}`:        `"auth.type" must be "oauth", "client_credentials", "enterprise", "workload", "apikey" or "none"`,
		`"oauth": {"flow": "popup"}`:       `"oauth.flow" must be "browser", "device" or "paste"`,
		`"auth": {"client_secret": 12345}`: `"auth.client_secret" must be a string`,
		`"auth": {"issuer": {}}`:           `"auth.issuer" must be a string`,
		`"auth": {"tokenUrl": "s3cret"}`: `"token_url"` +
			noURL,
		`"auth": {"issuer": "javascript:s3cret"}`: `"issuer"` +
			noURL,
		`"auth": {"device_url": "https://"}`: `"device_url"` +
			noURL,
		`"oauth": {"redirectUri": " http://h/ "}`: `"redirect_uri"` + noURL,
		`"auth": {"token_url": "${AS}/t"}`: `"token_url"` +
			noURL + ` (not set: AS)`,
		`"auth": {"resource": "h/x"}`:              `"resource" in "auth" must be an absolute URI without a fragment, or "none"`,
		`"auth": {"resource": "https://h#x"}`:      `"resource" in "auth" must be an absolute URI without a fragment, or "none"`,
		`"auth": {"callbackPort": 65536}`:          `"auth.callbackPort" must be a port, 1 to 65535`,
		`"auth": {"callbackPort": 0}`:              `"auth.callbackPort" must be a port, 1 to 65535`,
		`"auth": {"callbackPort": true}`:           `"auth.callbackPort" must be a port, 1 to 65535`,
		`"auth": {"scopes": [1]}`:                  `"auth.scopes" must be a list of scopes, or a string with spaces between them`,
		`"auth": {"scopes": ["a\"b"]}`:             `"auth.scopes" must be a list of scopes, or a string with spaces between them`,
		`"auth": {"scope": {"a": true}}`:           `"auth.scope" must be a list of scopes, or a string with spaces between them`,
		`"credentials": "a b"`:                     `"credentials" must be "per-caller", or the name of stored credentials: letters, numbers, dash, underscore and dot`,
		`"credentials": "../x"`:                    `"credentials" must be "per-caller", or the name of stored credentials: letters, numbers, dash, underscore and dot`,
		`"auth": {"client_id": "x"}, "oauth": "x"`: `"oauth" must be "oauth", "client_credentials", "enterprise", "workload", "apikey" or "none"`,
	} {
		row, _ := rowOf(t, newWorld(t, nil), `{"url": "https://h", `+members+`}`)
		if row.Phase != drawbridge.Refused || row.Reason != `Server "n": `+want {
			t.Errorf("%s\n got %s: %s\nwant refused: %s", members, row.Phase, row.Reason, want)
		}
	}
}

func TestAuthWarnings(t *testing.T) {
	_, warnings := rowOf(t, newWorld(t, nil), `{"url": "https://h", "auth": {"clientid": "s3cret", "client_id": "s3cret", "clientId": "b", "mood": 1},
"oauth": {"clint_secret": "s3cret"}}`)
	wantDiff(t, "warnings", []string{
		userJSON + `:1: Server "n": unknown member "clientid" in "auth"; did you mean "client_id"?`,
		userJSON + `:1: Server "n": "client_id" in "auth" is written twice; the last one is used`,
		userJSON + `:1: Server "n": unknown member "mood" in "auth"`,
		userJSON + `:2: Server "n": unknown member "clint_secret" in "oauth"; did you mean "client_secret"?`,
	}, warnings)
}

// TestAuthCounts: how a server is signed in at is part of what the row is.
func TestAuthCounts(t *testing.T) {
	rows := map[string]Server{}
	for _, members := range []string{``, `, "auth": {"client_secret": "hunter2"}`,
		`, "auth": {"client_secret": "hunter3"}`, `, "oauth": false`} {
		row, _ := rowOf(t, newWorld(t, nil), `{"url": "https://h"`+members+`}`)
		if other, ok := rows[row.Hash]; ok {
			t.Errorf("%s has the hash of %s", row.Raw, other.Raw)
		}
		rows[row.Hash] = row
		if got := fmt.Sprintf("%v %+v %#v", row.Auth, row.Auth, row.Auth); strings.Contains(got, "hunter") {
			t.Errorf("it is printed as %s", got)
		}
	}
}

func TestARowIsWrittenWithAuthThatIsSetElsewhere(t *testing.T) {
	path := fileWith(t, "mcp.json", "{}")
	if err := AddServer(path, "a",
		[]byte(`{"url": "https://h", "auth": {"token_url": "${AS}/t", "client_secret": "${file:x}"}}`)); err != nil {
		t.Error(err)
	}
	err := AddServer(path, "b", []byte(`{"url": "https://h", "auth": {"token_url": "ftp://as"}}`))
	if want := `Invalid server config: Server "b": "token_url" in "auth" must be an http or https URL with a host`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
