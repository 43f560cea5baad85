package signin

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
	"github.com/drawbridge-mcp/drawbridge/bridge/proof"
)

// A token is what an authorization server grants. The package oauth2 has a type for it, and reads it too strictly: it drops a
// whole answer for an expires_in of 3600.0, and the life of a token that comes as a form.
type token struct {
	access, refresh, kind string
	// life is how long it is good for; 0 where the server does not say, or nothing that can be so.
	life time.Duration
	// scopes are nil where the server does not say what it granted.
	scopes []string
}

// errNoToken says that an authorization server answered well, and gave nothing.
var errNoToken = errors.New("the authorization server's answer holds no token")

// grant asks a token endpoint for a token.
func (c *Credential) grant(ctx context.Context, s site, who client, values url.Values) (token, error) {
	if s.Resource != "" {
		values.Set("resource", s.Resource)
	}
	if who.Key != "" {
		if err := proof.Add(values, who.Key, who.ID, s.Issuer, c.desk.o.Now()); err != nil {
			return token{}, err
		}
	}
	members, err := c.ask(ctx, s.Token, s, who, values)
	if err != nil {
		return token{}, err
	}
	return members.token()
}

// ask puts a form to an endpoint of an authorization server, as a client that proves itself. The error is a *refusal where
// the server said no, or gave a status that does.
func (c *Credential) ask(ctx context.Context, address string, s site, who client, values url.Values) (answer, error) {
	method := who.method(s)
	members, err := c.post(ctx, address, who, method, values)
	said, refused := errors.AsType[*refusal](err)
	if refused && (said.status == http.StatusUnauthorized || said.code == "invalid_client") && method == basic && who.Method == "" && len(s.Methods) == 0 {
		return c.post(ctx, address, who, inForm, values) // nobody said which way it is
	}
	return members, err
}

func (c *Credential) post(ctx context.Context, address string, who client, method string, values url.Values) (answer, error) {
	if method != basic {
		values.Set("client_id", who.ID)
	}
	if method == inForm {
		values.Set("client_secret", who.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, unasked{plain(err)}
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if method == basic {
		req.SetBasicAuth(url.QueryEscape(who.ID), url.QueryEscape(who.Secret)) // RFC 6749, 2.3.1
	}
	resp, err := c.client.Do(req)
	if err != nil {
		if err = plain(err); neverSent(err) {
			return nil, unasked{err}
		}
		return nil, away(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil {
		return nil, away(plain(err))
	}
	members := parseAnswer(resp.Header.Get("Content-Type"), body)
	if code := members.text("error"); code != "" || resp.StatusCode < 200 || resp.StatusCode > 299 {
		hide := c.hider(values, who)
		return nil, &refusal{status: resp.StatusCode, code: hide(code), description: hide(members.text("error_description"))}
	}
	return members, nil
}

// An unasked error is one of a request that did not arrive: what was to be spent with it is not spent.
type unasked struct{ error }

func (u unasked) Unwrap() error { return u.error }

func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// hider takes out of a text of the server's what is between us: some repeat what they do not like.
func (c *Credential) hider(values url.Values, who client) func(string) string {
	const shortest = 4
	secrets := []string{who.Secret}
	if r, err := c.current(); err == nil {
		secrets = append(secrets, r.Access, r.Refresh, r.Client.Secret)
		for _, p := range r.Pending {
			secrets = append(secrets, p.Verifier)
		}
	}
	for _, name := range []string{"code", "code_verifier", "refresh_token", "device_code", "token", "subject_token", "assertion", "client_assertion"} {
		secrets = append(secrets, values.Get(name))
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // the first that fits is taken
	pairs := []string{}
	for _, text := range secrets {
		if len(text) >= shortest {
			pairs = append(pairs, text, drawbridge.Redacted)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// An answer has the members of what an authorization server said, as JSON or as a form.
type answer map[string]json.RawMessage

// parseAnswer reads an answer; one that is neither has no members.
func parseAnswer(contentType string, body []byte) answer {
	body = bytes.TrimSpace(body)
	if bytes.HasPrefix(body, []byte("{")) {
		var members answer
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
	members := answer{}
	for name := range values {
		if text, err := json.Marshal(values.Get(name)); err == nil {
			members[name] = text
		}
	}
	return members
}

// text gives a member that is a string; else "".
func (a answer) text(name string) string {
	var text string
	if json.Unmarshal(a[name], &text) != nil {
		return ""
	}
	return text
}

// seconds gives a member that is a number of seconds, or a text of one; 0 for none, and for what cannot be meant.
func (a answer) seconds(name string) time.Duration {
	const most = 100 * 365 * 24 * 3600
	n, err := strconv.ParseFloat(strings.Trim(string(a[name]), `" `), 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n > most {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

func (a answer) token() (token, error) {
	t := token{access: a.text("access_token"), refresh: a.text("refresh_token"), kind: a.text("token_type"), life: a.seconds("expires_in")}
	if scope := a.text("scope"); scope != "" {
		t.scopes = strings.FieldsFunc(scope, func(r rune) bool { return r == ' ' || r == ',' })
	}
	if t.access == "" || strings.ContainsFunc(t.access, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return token{}, errNoToken
	}
	return t, nil
}

// A kindError is a token that is to be sent otherwise than as a bearer's.
type kindError string

func (k kindError) Error() string {
	return "the authorization server gives tokens of a kind that we do not speak: " + strconv.Quote(printable(string(k)))
}

// bearers says whether the token is one that we can send.
func (t token) bearers() error {
	if t.kind != "" && !strings.EqualFold(t.kind, "bearer") {
		return kindError(t.kind)
	}
	return nil
}
