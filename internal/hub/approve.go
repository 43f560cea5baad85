package hub

import (
	"context"
	"encoding/json"
	"os"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
)

// An ApprovalAnswer is a person's decision on a call that waits for approval.
type ApprovalAnswer struct {
	ID    string `json:"id"`
	Allow bool   `json:"allow"`
	// Scope describes the later calls that are allowed too; the zero value allows only this call.
	Scope admin.GrantScope `json:"scope,omitzero"`
}

// Approve sends a person's decision on a waiting call to the hub, which stores the decision. The error is ErrNoHub if
// no hub runs or the hub is too old for this request. Otherwise it is the reason why the hub did not store the
// decision.
func Approve(ctx context.Context, o Options, answer ApprovalAnswer) error {
	said := o.newHello(wantApprove)
	said.Approval = &answer
	var did callLine
	err := requestLine(ctx, o, said, connectTimeout, func(text []byte) error { return json.Unmarshal(text, &did) })
	switch {
	case isUnknownVerb(err):
		return errNoHub
	case err != nil:
		return err
	}
	return did.Fault.Decode()
}

// sendApprove handles the verb approve: it stores the decision and sends the outcome.
func (h *hub) sendApprove(ctx context.Context, said hello, l *lineConn) error {
	a := said.Approval
	if a == nil {
		return l.sendWelcome(0, invalidInputFault("read the request to the hub: approve needs an approval"))
	}
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	err := h.adminService().AnswerApproval(ctx, a.ID, a.Allow, a.Scope, "")
	line := callLine{Fault: command.EncodeFault(err)}
	if err == nil {
		line.Result = json.RawMessage("{}")
	}
	return l.writeJSON(line)
}

// adminService returns a service that stores decisions on approvals in the hub's store.
func (h *hub) adminService() *admin.Service {
	c := h.o.Config
	return admin.New(admin.Options{ConfigOptions: config.Options{Paths: c.Paths, Dir: c.Dir, LookupEnv: c.LookupEnv},
		Store: c.Store, CommandPrefix: "drawbridge mcp", AdminRecorder: c.AdminRecorder(), Gateway: c})
}
