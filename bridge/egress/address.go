package egress

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// MaxAddress is how long an address may be that is shown and opened.
const MaxAddress = 8 << 10

// Check refuses addresses that should not be fetched, nor opened: all but https, and http on this machine.
func Check(address string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > MaxAddress:
		return errors.New("is too long")
	case err != nil || u.Host == "" || u.User != nil || strings.ContainsFunc(address, unfit):
		return errors.New("is no proper URL")
	case u.Scheme == "https", u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("must be https: %.40q", u.Scheme+"://"+u.Host)
}

// unfit are characters that no address has as it stands.
func unfit(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"`<>\\^{}|", r) }

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
