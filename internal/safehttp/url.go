package safehttp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// UserAgent is the User-Agent header of requests to pages and search providers.
const UserAgent = "Drawbridge (+https://github.com/drawbridge-mcp/drawbridge)"

// MaxURLBytes is the maximum length of an address that is shown and opened.
const MaxURLBytes = 8 << 10

// CheckURL returns an error for an address that must not be requested or opened. Only https is allowed, and http for
// this machine. The error text is the predicate of a sentence that begins with the address, such as "is too long".
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > MaxURLBytes:
		return errors.New("is too long")
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsFunc(address, isInvalidURLRune):
		return errors.New("is not a valid URL")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("is not a valid URL")
	case slices.Contains(unsafePorts(), u.Port()):
		return errors.New("has a port that is reserved for another protocol")
	case u.Scheme == "https", u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("must be https: %.40q", u.Scheme+"://"+u.Host)
}

// CheckPageURL is like CheckURL, for the address of a web page, for which http is allowed too.
func CheckPageURL(address string) error {
	if rest, ok := strings.CutPrefix(address, "http://"); ok {
		address = "https://" + rest
	}
	return CheckURL(address)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// unsafePorts returns ports of other protocols. A server of such a protocol may read an HTTP request as commands of its
// own protocol. The ports are from the "bad ports" of the Fetch standard; ports of databases are added.
func unsafePorts() []string {
	return []string{"0", "7", "9", "19", "21", "22", "23", "25", "53", "69", "110", "111", "119", "135", "137", "139",
		"143", "161", "389", "445", "465", "512", "513", "514",
		"515", "587", "636", "993", "995", "2049", "3306", "5432", "6000", "6379", "6667", "11211", "27017"}
}

// isInvalidURLRune reports whether a character must not occur unescaped in an address.
func isInvalidURLRune(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"`<>\\^{}|", r)
}

// Origin returns the scheme and host of an address in lower case, with the port if it is not the default port. It
// returns "" for an invalid address.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[scheme]; port != "" {
		host = strings.TrimSuffix(host, port)
	}
	return scheme + "://" + host
}
