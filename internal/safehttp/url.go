package safehttp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// MaxURLBytes is how long an address may be that is shown and opened.
const MaxURLBytes = 8 << 10

// CheckURL refuses addresses that should not be fetched, nor opened: all but https, and http on this machine.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > MaxURLBytes:
		return errors.New("is too long")
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsFunc(address, isInvalidURLRune):
		return errors.New("is no proper URL")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("is no proper URL")
	case slices.Contains(unsafePorts(), u.Port()):
		return errors.New("has a port at which no web server is")
	case u.Scheme == "https", u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("must be https: %.40q", u.Scheme+"://"+u.Host)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// unsafePorts are ports of services that take a request for one in their own tongue (of the list of "bad ports" of the
// Fetch standard), and of stores.
func unsafePorts() []string {
	return []string{"0", "7", "9", "19", "21", "22", "23", "25", "53", "69", "110", "111", "119", "135", "137", "139",
		"143", "161", "389", "445", "465", "512", "513", "514",
		"515", "587", "636", "993", "995", "2049", "3306", "5432", "6000", "6379", "6667", "11211", "27017"}
}

// isInvalidURLRune are characters that no address has as it stands.
func isInvalidURLRune(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"`<>\\^{}|", r)
}

// Origin is the scheme and host of an address, in lower case, with a port that says something.
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
