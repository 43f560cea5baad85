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

// An AdminAction describes a change that a person makes to the configuration, to approvals or to other data that guards
// use. It contains no secret.
type AdminAction struct {
	// Command is the command as typed, without its arguments: "shield accept".
	Command string
	// Server is the server that the action concerns, Subject is the tool or other item, and Detail is further text.
	// Each may be empty.
	Server          drawbridge.ServerID
	Subject, Detail string
}

// An AdminRecorder calls do between two audit records: one before the call that describes the action act, and one after
// it with the outcome. If the first record cannot be written, do is not called. A nil AdminRecorder means that nothing
// is recorded; see Run.
type AdminRecorder func(act AdminAction, do func() error) error

// Run calls do and records the call in the audit as the action act. If k is nil, Run only calls do.
func (k AdminRecorder) Run(act AdminAction, do func() error) error {
	if k == nil {
		return do()
	}
	return k(act, do)
}

// CurrentUser returns the name of the operating system's user that runs this process. This name is the principal of the
// owner's calls and actions.
func CurrentUser() string { return processOwner().Principal }

// CurrentApprover returns the user of this process and this machine. An approval of a server that a project configures
// is valid only for that user on that machine.
func CurrentApprover() store.Approver {
	return store.Approver{Principal: CurrentUser(), Machine: machineName()}
}

// machineName returns a name of this machine that stays the same after a restart. It is a hash of the machine id,
// because the id itself is confidential. If the system has no id, it is the host name.
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

// AdminRecorder returns a recorder that writes to the audit of a gateway with this configuration, whether the gateway
// runs or not. The records are first written to the spool directory beside the store. The next gateway, or the next
// command that reads the audit, moves them to the store. If the audit is off, or the store is [MemoryStore], nothing is
// written.
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

// spoolRecorder returns a recorder that writes to the spool directory and does not need an open store. It returns nil
// if the audit is off or the store is in memory.
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

// recordRulesChange writes an audit record that the rules in the configuration have changed. If the record cannot be
// written, it logs the error. Then the audit rejects the records of calls too, so no call is sent.
func (g *Gateway) recordRulesChange(rules *drawbridge.Rules) {
	if g.shared.audit == nil {
		return
	}
	why := "there are none"
	if rules != nil {
		text, err := json.Marshal(rules)
		if err != nil {
			text = nil // the record then contains only the number of rules
		}
		why = fmt.Sprintf("%d rules, sha256:%x", len(rules.Rules), sha256.Sum256(text))
	}
	r := audit.Record{ID: ulid.Make().String(), Kind: audit.AdminAction, At: time.Now(), Transport: "files",
		Method: "rules changed", Reason: why, Outcome: audit.OK}
	if err := g.shared.audit.Record(r); err != nil {
		g.log.Error("record the change of rules", "err", err)
	}
}
