package bearer

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// claims are what a token says, or its issuer of it. What is not said is zero.
type claims struct {
	issuer, subject, client string
	audience                []string
	scopes                  []string
	expires, notBefore      time.Time
	// scoped says that something is said of scopes, active what introspection says of the token. bound says that the token is
	// not for bearers, identity that it says who somebody is and is not for access; nonce that it may be of that kind, and
	// access that it is not.
	scoped, active, bound, identity, nonce, access bool
}

var errClaims = errors.New("the claims are not understood")

// readClaims reads claims from a JSON object. Anything said twice, or said as another kind of value than it must be, is an
// error: another reader could understand it otherwise.
func readClaims(raw []byte) (c claims, err error) {
	if wire.Valid(raw) != nil {
		return claims{}, errClaims
	}
	seen := map[string]bool{}
	for m := range wire.Members(raw) {
		name, ok := wire.Text(m.Name)
		if !ok || seen[name] || !c.read(name, m.Value) {
			return claims{}, errClaims
		}
		seen[name] = true
	}
	if len(seen) == 0 {
		return claims{}, errClaims
	}
	if c.client == "" && seen["azp"] {
		c.client = wire.GetText(raw, "azp")
	}
	if c.scoped = seen["scope"] || seen["scp"]; !seen["scope"] {
		c.scopes, _ = readWords(wire.Get(raw, "scp"))
	}
	return c, nil
}

// read reads one claim. It says false for one that says no such thing.
func (c *claims) read(name string, value json.RawMessage) (ok bool) {
	ok = true
	switch name {
	case "iss":
		c.issuer, ok = wire.Text(value)
	case "sub":
		c.subject, ok = wire.Text(value)
	case "client_id":
		c.client, ok = wire.Text(value)
	case "azp":
		_, ok = wire.Text(value)
	case "aud":
		c.audience, ok = readTexts(value)
	case "scope":
		c.scopes, ok = readWords(value)
	case "scp":
		_, ok = readWords(value)
	case "exp":
		c.expires, ok = readTime(value)
	case "nbf":
		c.notBefore, ok = readTime(value)
	case "iat":
		_, ok = readTime(value)
	case "active":
		c.active, ok = string(value) == "true", string(value) == "true" || string(value) == "false"
	case "cnf":
		c.bound = true // to a key or a certificate (RFC 7800), which a thief of the token has not
	case "token_type":
		// Of introspection: RFC 7662 has the type of RFC 6749 there, which DPoP has others for.
		kind, isText := wire.Text(value)
		c.bound, ok = c.bound || strings.EqualFold(kind, "DPoP") || strings.EqualFold(kind, "mac"), isText
	case "at_hash", "c_hash", "s_hash":
		c.identity = true // what only an ID token has (OpenID Connect Core 1.0, 3.3.2.11)
	case "nonce":
		c.nonce = true // what ID tokens have, and the access tokens of some issuers
	case "typ", "token_use": // of Keycloak and Cognito
		kind, _ := wire.Text(value)
		switch strings.ToLower(kind) {
		case "id", "refresh", "offline", "logout":
			c.identity = true
		case "bearer", "access":
			c.access = true
		}
	}
	return ok
}

// readTexts reads a string, or an array of strings.
func readTexts(value json.RawMessage) (texts []string, ok bool) {
	if text, ok := wire.Text(value); ok {
		return []string{text}, true
	}
	if len(value) == 0 || value[0] != '[' {
		return nil, false
	}
	for item := range wire.Elements(value) {
		text, ok := wire.Text(item)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// readWords is readTexts for words that may stand in one string.
func readWords(value json.RawMessage) (words []string, ok bool) {
	texts, ok := readTexts(value)
	for _, text := range texts {
		words = append(words, strings.Fields(text)...)
	}
	return words, ok
}

// lastTime is the end of the year 9999. What is later was not meant in seconds.
const lastTime = 253402300799

// readTime reads seconds since 1970, which may have a fraction.
func readTime(value json.RawMessage) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || seconds < 0 || seconds > lastTime || len(value) > 32 {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
}

// fits checks what does not depend on who vouched for the token: that it is for access, for bearers, for this resource, and
// for now. The error is a *drawbridge.Fault AuthFailure.
func (v *Verifier) fits(c claims, resource string) error {
	now, skew := v.o.Now(), v.o.ClockSkew
	want := v.o.Audience
	if want == "" {
		want = resource
	}
	switch {
	case c.identity || c.nonce && !c.access:
		return unproved("the token is no access token")
	case c.bound:
		return unproved("the token is bound to a key, and was sent as a bearer token")
	case !c.expires.IsZero() && !now.Before(c.expires.Add(skew)):
		return unproved("the token has expired")
	case !c.notBefore.IsZero() && now.Before(c.notBefore.Add(-skew)):
		return unproved("the token is not valid yet")
	case want == "" || !slices.ContainsFunc(c.audience, func(a string) bool { return sameResource(a, want) }):
		return unproved("the token is for another resource")
	}
	return nil
}

// sameResource compares resource identifiers as RFC 9728 wants it (section 3.3: by their characters), but for a URL without
// a path, which some issuers end in a slash and some do not.
func sameResource(a, b string) bool {
	if a == b {
		return true
	}
	bare := func(s string) (string, bool) {
		_, rest, ok := strings.Cut(s, "://")
		host := strings.TrimSuffix(rest, "/")
		return strings.TrimSuffix(s, "/"), ok && host != "" && !strings.ContainsAny(host, "/?#")
	}
	one, okOne := bare(a)
	other, okOther := bare(b)
	return okOne && okOther && one == other
}

// maxSubject is the most bytes of a subject; OpenID Connect allows 255.
const maxSubject = 512

// programPrefix begins the principal of a program that got a token for itself.
const programPrefix = "program:"

// principal names who a token is about: "SUBJECT@ISSUER". The issuer, a URL, has no "@", so that no two issuers share a
// principal, nor an issuer and the user of an operating system. The error is a *drawbridge.Fault AuthFailure.
func (v *Verifier) principal(c claims) (string, error) {
	who := c.subject
	switch {
	case who == "" && v.o.Programs && c.client != "":
		who = programPrefix + c.client
	case who == "":
		return "", unproved("the token has no subject")
	case v.o.Programs && strings.HasPrefix(who, programPrefix):
		return "", unproved("the token's subject is named as a program")
	}
	if len(who) > maxSubject || strings.ContainsFunc(who, unicode.IsControl) {
		return "", unproved("the token's subject is no name")
	}
	return who + "@" + c.issuer, nil
}
