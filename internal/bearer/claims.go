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

// claims are the claims of a token, or an issuer's statements about it. Absent claims are zero.
type claims struct {
	issuer, subject, client string
	audience                []string
	scopes                  []string
	expires, notBefore      time.Time
	// hasScopes reports that scopes are stated; active is the answer of introspection. keyBound reports that the token
	// is not a bearer token. isIDToken reports that it identifies a user and is not for access; hasNonce that it may be
	// such a token, and isAccessToken that it is not.
	hasScopes, active, keyBound, isIDToken, hasNonce, isAccessToken bool
}

var errClaims = errors.New("the claims are not understood")

// readClaims reads claims from a JSON object. Anything said twice, or said as another kind of value than it must be,
// is an error: another reader could understand it otherwise.
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
		c.keyBound = true // to a key or a certificate (RFC 7800), which a thief of the token has not
	case "token_type":
		// Of introspection: RFC 7662 has the type of RFC 6749 there, which DPoP has others for.
		kind, isText := rawjson.DecodeString(value)
		c.keyBound, ok = c.keyBound || strings.EqualFold(kind, "DPoP") || strings.EqualFold(kind, "mac"), isText
	case "at_hash", "c_hash", "s_hash":
		c.isIDToken = true // only ID tokens have it (OpenID Connect Core 1.0, 3.3.2.11)
	case "nonce":
		c.hasNonce = true // ID tokens have it, and the access tokens of some issuers
	case "typ", "token_use": // of Keycloak and Cognito
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

// readStrings reads a string, or an array of strings.
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

// readScopes is readStrings for words that may stand in one string.
func readScopes(value json.RawMessage) (words []string, ok bool) {
	texts, ok := readStrings(value)
	for _, text := range texts {
		words = append(words, strings.Fields(text)...)
	}
	return words, ok
}

// maxUnixTime is the end of the year 9999. Later values were not meant in seconds.
const maxUnixTime = 253402300799

// readTime reads seconds since 1970, which may have a fraction.
func readTime(value json.RawMessage) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(string(value), 64)
	if err != nil || seconds < 0 || seconds > maxUnixTime || len(value) > 32 {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
}

// checkClaims checks everything that does not depend on the way the token was verified: that it is an access token, a
// bearer token, for this resource, and valid now. The error is a *drawbridge.Fault AuthFailure.
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

// sameResource compares resource identifiers by their characters, as RFC 9728 (section 3.3) requires. The exception is
// a URL without a path, which some issuers end with a slash.
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
