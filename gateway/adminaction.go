package gateway

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/oklog/ulid/v2"
)

// An AdminAction is something that a person does to what guards go by. No secret is in it.
type AdminAction struct {
	// Command is what they typed, without its arguments: "shield accept".
	Command string
	// Server is the one that it concerns, On what of it or what else it is about, Detail what more there is to say.
	// Each may be empty.
	Server          drawbridge.ServerID
	Subject, Detail string
}

// A AdminRecorder does what people ask for on record: an entry before it is done, and one that says what came of it.
// What cannot be recorded is not done. A nil Clerk only does it.
type AdminRecorder func(act AdminAction, do func() error) error

// Run does it.
func (k AdminRecorder) Run(act AdminAction, do func() error) error {
	if k == nil {
		return do()
	}
	return k(act, do)
}

// CurrentUser names who runs this process, as the operating system knows them: the principal of their calls and acts.
func CurrentUser() string { return processOwner().Principal }

// CurrentApprover names who runs this process, and the machine, for decisions about rows of projects.
func CurrentApprover() store.Approver {
	return store.Approver{Principal: CurrentUser(), Machine: machineName()}
}

// machineName returns a name of this machine that outlives a restart: a hash of its id, which is not for others to know,
// or the host name where the system has no id.
func machineName() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil && len(strings.TrimSpace(string(id))) >= 16 {
			return fmt.Sprintf("%x", sha256.Sum256([]byte("drawbridge\x00"+strings.TrimSpace(string(id)))))[:16]
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// AdminRecorder gives the one who writes into the audit of a gateway with that configuration, whether one runs or not:
// the entries lie beside the store, and whoever reads the audit next takes them in. Where the audit is off, or the
// store forgets, nothing is written.
func (c Config) AdminRecorder() AdminRecorder {
	return func(act AdminAction, do func() error) error {
		j, err := c.spoolRecorder()
		if err != nil {
			return err
		}
		if j == nil {
			return do()
		}
		began := time.Now()
		r := audit.Record{
			ID: ulid.Make().String(), Kind: audit.AdminAction, At: began,
			Caller:    audit.Caller{Kind: drawbridge.Author.String(), Principal: CurrentUser()},
			Transport: "command line", Method: act.Command, Card: act.Subject, Server: string(act.Server),
			Tool: act.Subject, Reason: act.Detail,
		}
		if err := j.Record(r); err != nil {
			return errors.Join(err, j.Close())
		}
		done := do()
		end := audit.Record{ID: r.ID, Kind: audit.Done, At: time.Now(), Outcome: audit.OK, Duration: time.Since(began)}
		if done != nil {
			end.Outcome, end.Code = audit.Fault, string(drawbridge.AsFault(done).Code)
		}
		return errors.Join(done, j.Record(end), j.Close())
	}
}

// spoolRecorder gives what takes records where no store is open; nil where none are kept.
func (c Config) spoolRecorder() (*store.SpoolRecorder, error) {
	s, err := loadSettings(c)
	if err != nil {
		return nil, err
	}
	if s.Audit.Enabled != nil && !*s.Audit.Enabled {
		return nil, nil
	}
	dir, err := auditSpoolDir(c.Store, s, c.LookupEnv)
	if err != nil || dir == "" {
		return nil, err
	}
	return store.NewSpoolRecorder(dir, audit.RedactionRules{Arguments: audit.ArgumentMode(s.Audit.Arguments)},
		s.Audit.Sync == "always"), nil
}

// recordRulesChange has on record that other rules count from now on, which a person wrote into a file. Where that
// fails no call is recorded either, and none is sent.
func (g *Gateway) recordRulesChange(rules *drawbridge.Rules) {
	if g.shared.audit == nil {
		return
	}
	why := "there are none"
	if rules != nil {
		text, err := json.Marshal(rules)
		if err != nil {
			text = nil // they are known by their number alone
		}
		why = fmt.Sprintf("%d rules, sha256:%x", len(rules.Rules), sha256.Sum256(text))
	}
	r := audit.Record{ID: ulid.Make().String(), Kind: audit.AdminAction, At: time.Now(), Transport: "files",
		Method: "rules changed", Reason: why, Outcome: audit.OK}
	if err := g.shared.audit.Record(r); err != nil {
		g.log.Error("that the rules changed is not on record", "err", err)
	}
}
