package audit_test

import (
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

func TestSecretName(t *testing.T) {
	for names, want := range map[string]bool{
		// Words that are written together with others.
		"PGPASSWORD dbpassword dbpasswords rootpasswd userpwd SSHPASS sshpass storepass keypass dbpass_1 mysecret dbtoken myapikey keypassphrase": true,
		"MYSQL_PWD password passwords passwd passphrase pass db-pass apiKey X-Auth-Token":                                                         true,
		"bypass compass encompass surpasses trespass lowpass passage passenger passive address access class author keyboard spinner":              false,
		"pw cwd path text query limit": false,
	} {
		for name := range strings.FieldsSeq(names) {
			if got := audit.IsSecretName(name); got != want {
				t.Errorf("%s is a secret's name: %v, want %v", name, got, want)
			}
		}
	}
}
