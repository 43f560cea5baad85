package bearer

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// claims are the claims of a token, or the members of an introspection response. Absent claims are zero.
type claims struct {
	issuer, subject, client string
	audience                []string
	scopes                  []string
	expires, notBefore      time.Time
	// hasScopes reports whether the claims include scopes. active is the member active of an introspection response.
	// keyBound reports that the token is bound to a key, so it is not a bearer token. isIDToken reports that the token
	// identifies a user and does not grant access (an ID token). A token with hasNonce is also treated as an ID token,
	// unless isAccessToken reports that its type is that of an access token.
	hasScopes, active, keyBound, isIDToken, hasNonce, isAccessToken bool
}

var errClaims = errors.New("the claims are not understood")

// readClaims parses claims from a JSON object. Duplicate claims and values of a wrong type are errors, since another
// parser could read them differently.
func readClaims(raw []byte) (c claims, err error) {
	if rawjson.Valid(raw) != nil {
		return claims{}, errClaims
	}
	seen := map[string]bool{}
	for m := range rawjson.Members(raw) {
		name, ok := rawjson.DecodeString(m.Name)
		if !ok || seen[name] || !c.read(name, m.Value) {
			return claims{}, errClaims
		}
		seen[name] = true
	}
	if len(seen) == 0 {
		return claims{}, errClaims
	}
	if c.client == "" && seen["azp"] {
		c.client = rawjson.GetString(raw, "azp")
	}
	if c.hasScopes = seen["scope"] || seen["scp"]; !seen["scope"] {
		c.scopes, _ = readScopes(rawjson.Get(raw, "scp"))
	}
	return c, nil
}

// read reads one claim. It reports false for a value of the wrong type.
func (c *claims) read(name string, value json.RawMessage) (ok bool) {
	ok = true
	switch name {
	case "iss":
		c.issuer, ok = rawjson.DecodeString(value)
	case "sub":
		c.subject, ok = rawjson.DecodeString(value)
	case "client_id":
		c.client, ok = rawjson.DecodeString(value)
	case "azp":
		_, ok = rawjson.DecodeString(value)
	case "aud":
		c.audience, ok = readStrings(value)
	case "scope":
		c.scopes, ok = readScopes(value)
	case "scp":
		_, ok = readScopes(value)
	case "exp":
		c.expires, ok = readTime(value)
	case "nbf":
		c.notBefore, ok = readTime(value)
	case "iat":
		_, ok = readTime(value)
	case "active":
		c.active, ok = string(value) == "true", string(value) == "true" || string(value) == "false"
	case "cnf":
		c.keyBound = true // bound to a key or a certificate (RFC 7800)
	case "token_type":
		// In introspection responses (RFC 7662), this is the type of RFC 6749. Tokens of the types DPoP and mac are
		// bound to a key.
		kind, isText := rawjson.DecodeString(value)
		c.keyBound, ok = c.keyBound || strings.EqualFold(kind, "DPoP") || strings.EqualFold(kind, "mac"), isText
	case "at_hash", "c_hash", "s_hash":
		c.isIDToken = true // only ID tokens have these claims (OpenID Connect Core 1.0, 3.3.2.11)
	case "nonce":
		c.hasNonce = true // ID tokens have a nonce, and so do the access tokens of some issuers
	case "typ", "token_use": // claims of Keycloak and Cognito
		kind, _ := rawjson.DecodeString(value)
		switch strings.ToLower(kind) {
		case "id", "refresh", "offline", "logout":
			c.isIDToken = true
		case "bearer", "access":
			c.isAccessToken = true
		}
	}
	return ok
}

// readStrings returns the strings in a JSON value that is a string or an array of strings.
func readStrings(value json.RawMessage) (texts []string, ok bool) {
	if text, ok := rawjson.DecodeString(value); ok {
		return []string{text}, true
	}
	if len(value) == 0 || value[0] != '[' {
		return nil, false
	}
	for item := range rawjson.Elements(value) {
		text, ok := rawjson.DecodeString(item)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, true
}

// readScopes is readStrings for scopes: it also splits each string at spaces.
func readScopes(value json.RawMessage) (words []string, ok bool) {
	texts, ok := readStrings(value)
	for _, text := range texts {
		words = append(words, strings.Fields(text)...)
	}
	return words, ok
}

// maxUnixTime is the end of the year 9999. A later value is probably not in seconds.
const maxUnixTime = 253402300799

// readTime parses a number of seconds since 1970, which may have a fraction.
func readTime(value json.RawMessage) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || seconds < 0 || seconds > maxUnixTime || len(value) > 32 {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
}

// checkClaims checks the claims of a verified token. The token must be a bearer token, an access token and valid now.
// It must be for Options.Audience, or, if that is empty, for resource. The error is a *drawbridge.Fault AuthFailure.
func (v *Verifier) checkClaims(c claims, resource string) error {
	now, skew := v.o.Now(), v.o.ClockSkew
	want := v.o.Audience
	if want == "" {
		want = resource
	}
	switch {
	case c.isIDToken || c.hasNonce && !c.isAccessToken:
		return authFailure("the token is not an access token")
	case c.keyBound:
		return authFailure("the token is bound to a key, and was sent as a bearer token")
	case !c.expires.IsZero() && !v.o.ExpiryTime(now).Before(c.expires.Add(skew)):
		return authFailure("the token has expired")
	case !c.notBefore.IsZero() && now.Before(c.notBefore.Add(-skew)):
		return authFailure("the token is not valid yet")
	case want == "" || !slices.ContainsFunc(c.audience, func(a string) bool { return sameResource(a, want) }):
		return authFailure("the token is for another resource")
	}
	return nil
}

// sameResource reports whether two resource identifiers are equal, character by character as RFC 9728 (section 3.3)
// requires. There is one exception: a URL without a path equals the same URL with the path "/", which some issuers add.
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

// maxSubject is the maximum size of a subject in bytes; OpenID Connect allows 255.
const maxSubject = 512

// programPrefix is the beginning of the principal of a program that obtained a token for itself, without a user.
const programPrefix = "program:"

// principal returns the principal of a token: "SUBJECT@ISSUER", or "program:CLIENT@ISSUER" for a program's own token.
// The issuer is a URL without "@". Principals of different issuers therefore differ from each other, and from users of
// the operating system. The error is a *drawbridge.Fault AuthFailure.
func (v *Verifier) principal(c claims) (string, error) {
	who := c.subject
	switch {
	case who == "" && v.o.AllowPrograms && c.client != "":
		who = programPrefix + c.client
	case who == "":
		return "", authFailure("the token has no subject")
	case v.o.AllowPrograms && strings.HasPrefix(who, programPrefix):
		return "", authFailure("the token's subject is named as a program")
	}
	if len(who) > maxSubject || strings.ContainsFunc(who, unicode.IsControl) {
		return "", authFailure("the token's subject is too long or has control characters")
	}
	return who + "@" + c.issuer, nil
}
