package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
)

// A tokenResponse is a successful token response of an authorization server. The type of the package oauth2 is too
// strict: it rejects a whole response for an expires_in of 3600.0, and ignores the lifetime in form-encoded responses.
type tokenResponse struct {
	access, refresh, tokenType string
	// lifetime is how long the token is valid; 0 if the server names no plausible time.
	lifetime time.Duration
	// scopes are nil if the server does not name the granted scopes.
	scopes []string
}

// errNoToken is the error for a successful response without a token.
var errNoToken = errors.New("the authorization server's response has no valid access token")

// requestToken sends a token request with the given parameters to the token endpoint.
func (c *Credential) requestToken(ctx context.Context, s authServer, who clientIdentity,
	values url.Values) (tokenResponse, error) {
	if s.Resource != "" {
		values.Set("resource", s.Resource)
	}
	if who.Key != "" {
		if err := addClientAssertion(values, who.Key, who.ID, s.Issuer, c.manager.o.Now()); err != nil {
			return tokenResponse{}, err
		}
	}
	members, err := c.postAsClient(ctx, s.Token, s, who, values)
	if err != nil {
		return tokenResponse{}, err
	}
	return members.tokenResponse()
}

// postAsClient sends a form to an endpoint of an authorization server, with client authentication. It returns an
// *oauthError if the response has an error status or its body contains an error code.
func (c *Credential) postAsClient(ctx context.Context, address string, s authServer, who clientIdentity,
	values url.Values) (responseFields, error) {
	method := who.authMethod(s)
	members, err := c.postForm(ctx, address, who, method, values)
	refusal, refused := errors.AsType[*oauthError](err)
	if refused && (refusal.status == http.StatusUnauthorized || refusal.code == "invalid_client") &&
		method == authMethodBasic && who.Method == "" && len(s.AuthMethods) == 0 {
		// the method is unknown: neither the registration nor the metadata name it
		return c.postForm(ctx, address, who, authMethodPost, values)
	}
	return members, err
}

func (c *Credential) postForm(ctx context.Context, address string, who clientIdentity, method string,
	values url.Values) (responseFields, error) {
	if method != authMethodBasic {
		values.Set("client_id", who.ID)
	}
	if method == authMethodPost {
		values.Set("client_secret", who.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, notSentError{withoutURL(err)}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if method == authMethodBasic {
		req.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret)) // RFC 6749, 2.3.1
	}
	resp, err := c.client.Do(req)
	if err != nil {
		if err = withoutURL(err); isNotSent(err) {
			return nil, notSentError{err}
		}
		return nil, asUnavailable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil {
		return nil, asUnavailable(withoutURL(err))
	}
	members := parseResponse(resp.Header.Get("Content-Type"), body)
	if code := members.text("error"); code != "" || resp.StatusCode < 200 || resp.StatusCode > 299 {
		hide := c.secretRedactor(values, who)
		return nil, &oauthError{status: resp.StatusCode, code: hide(code),
			description: hide(members.text("error_description"))}
	}
	return members, nil
}

// A notSentError is the error of a request that was not sent. An authorization code or a token in the request can thus
// be sent again.
type notSentError struct{ error }

func (u notSentError) Unwrap() error { return u.error }

func isNotSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// secretRedactor returns a function that replaces the secrets of the credential and of the request values in a text. It
// is applied to error responses, in which some servers repeat request values.
func (c *Credential) secretRedactor(values url.Values, who clientIdentity) func(string) string {
	const shortest = 4
	secrets := []string{who.Secret}
	if r, err := c.currentRecord(); err == nil {
		secrets = append(secrets, r.Access, r.Refresh, r.Client.Secret)
		for _, p := range r.Pending {
			secrets = append(secrets, p.Verifier)
		}
	}
	for _, name := range []string{"code", "code_verifier", "refresh_token", "device_code", "token", "subject_token",
		"assertion", "client_assertion"} {
		secrets = append(secrets, values.Get(name))
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the longest match is replaced
	pairs := []string{}
	for _, text := range secrets {
		if len(text) >= shortest {
			pairs = append(pairs, text, drawbridge.Redacted)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// A responseFields contains the members of a response of an authorization server, sent as JSON or as a form.
type responseFields map[string]json.RawMessage

// parseResponse parses the body of a token response as JSON or as a form. It returns nil for any other content.
func parseResponse(contentType string, body []byte) responseFields {
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("{")) {
		var members responseFields
		if json.Unmarshal(body, &members) != nil {
			return nil
		}
		return members
	}
	media, _, _ := mime.ParseMediaType(contentType)
	if media != "application/x-www-form-urlencoded" && media != "text/plain" {
		return nil
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil
	}
	members := responseFields{}
	for name := range values {
		if text, err := json.Marshal(values.Get(name)); err == nil {
			members[name] = text
		}
	}
	return members
}

// text returns the value of a member that is a string, or "" for any other member.
func (a responseFields) text(name string) string {
	var text string
	if json.Unmarshal(a[name], &text) != nil {
		return ""
	}
	return text
}

// seconds returns the duration in a member that is a number of seconds, or a string with such a number. It returns 0 if
// the member is missing or its value is implausible.
func (a responseFields) seconds(name string) time.Duration {
	const most = 100 * 365 * 24 * 3600
	n, err := strconv.ParseFloat(strings.Trim(string(a[name]), `" `), 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n > most {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

func (a responseFields) tokenResponse() (tokenResponse, error) {
	t := tokenResponse{access: a.text("access_token"), refresh: a.text("refresh_token"),
		tokenType: a.text("token_type"), lifetime: a.seconds("expires_in")}
	if scope := a.text("scope"); scope != "" {
		t.scopes = strings.FieldsFunc(scope, func(r rune) bool { return r == ' ' || r == ',' })
	}
	if t.access == "" || strings.ContainsFunc(t.access, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return tokenResponse{}, errNoToken
	}
	return t, nil
}

// A tokenTypeError is the error for a token that is not a bearer token. Its value is the type of the token.
type tokenTypeError string

func (k tokenTypeError) Error() string {
	return "the authorization server issues tokens of an unsupported type: " +
		strconv.Quote(printable(string(k)))
}

// checkBearer returns an error if the token is not a bearer token.
func (t tokenResponse) checkBearer() error {
	if t.tokenType != "" && !strings.EqualFold(t.tokenType, "bearer") {
		return tokenTypeError(t.tokenType)
	}
	return nil
}
