package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge"
)

// databases lists the URL schemes that Open accepts, and places the schemes that OpenVectorStore accepts.
var (
	databases = []string{"postgres", "postgresql"}
	places    = []string{"postgres", "postgresql", "qdrant", "qdrants"}
)

var (
	// scheme matches the scheme at the beginning of a URL (RFC 3986, 3.1). A single letter does not match, because it
	// may be a Windows drive, as in C:\store.db.
	scheme = lazyregexp.New(`^([A-Za-z][A-Za-z0-9+.-]+):`)
	// keywords matches a text that contains "password=". Such a text may be a Postgres connection string in keyword
	// form, such as "host=db password=x".
	keywords = lazyregexp.New(`(?i)\bpassword\s*=`)
)

// CheckLocation checks the location of a store and returns it in the form that Open accepts. Valid locations are a
// file path, ":memory:", and a postgres:// URL. The scheme of a returned URL is in lower case.
//
// A text that resembles a URL is never accepted as a file path, because it may contain a password. For the same
// reason, CheckLocation refuses a path that contains a missing directory whose name has a colon. The error is a
// *drawbridge.Fault with code InvalidInput; it contains at most the scheme of the location.
func CheckLocation(location string) (string, error) {
	checked, err := checkLocation(location)
	if err != nil {
		return "", &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "open the store", Err: err,
			Next: "name a file, or write postgres://user:password@host:5432/database",
		}
	}
	return checked, nil
}

func checkLocation(location string) (string, error) {
	begin := scheme().FindStringSubmatch(location)
	switch {
	case location == "":
		return "", errors.New("no location")
	case location == memoryLocation:
		return location, nil
	case strings.Contains(location, "://"):
		return lowerScheme(location, databases)
	case begin != nil:
		return "", fmt.Errorf(`the location begins with "%s:" without "//"`, begin[1])
	case keywords().MatchString(location):
		return "", errors.New("the location has the form of Postgres keywords, not of a URL")
	case colonIn(filepath.Dir(location)):
		return "", errors.New("the directory does not exist and its name has a colon: the location may be a misspelt URL")
	}
	return location, nil
}

// lowerScheme returns the URL with its scheme in lower case. It returns an error if the scheme is not in known; the
// error names the scheme and the known schemes.
func lowerScheme(location string, known []string) (string, error) {
	name, rest, _ := strings.Cut(location, "://")
	name = strings.ToLower(name)
	switch begin := scheme().FindString(location); {
	case slices.Contains(known, name):
		return name + "://" + rest, nil
	case rest == "" || len(begin) != len(name)+1:
		return "", errors.New("the location is not a URL")
	}
	last := len(known) - 1
	return "", fmt.Errorf("unknown scheme %q; known are %s and %s", name, strings.Join(known[:last], ", "), known[last])
}

// colonIn reports whether the path dir contains a directory that does not exist and whose name contains a colon.
func colonIn(dir string) bool {
	for volume := filepath.VolumeName(dir); strings.Contains(dir[len(volume):], ":"); {
		if strings.Contains(filepath.Base(dir), ":") {
			if _, err := os.Stat(dir); err != nil {
				return true
			}
		}
		dir = filepath.Dir(dir)
	}
	return false
}
