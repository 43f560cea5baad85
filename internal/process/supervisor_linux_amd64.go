package process

import _ "embed"

// supervisorProgram is the supervisor as `make supervisor` builds it from the directory supervisor.
//
//go:embed supervisor/supervisor_amd64
var supervisorProgram []byte
