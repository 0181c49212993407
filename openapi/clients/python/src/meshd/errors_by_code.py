"""A class for each error code of the server, written by tools/make_errors.py from its /docs/errors."""

from .errors import Error


class MalformedRequest(Error):
    """The request cannot be read (400). Send what HTTP allows: escapes in the address, a plain head, a body only
    where one is taken.
    """

    code = "malformed_request"
    hint = "Send what HTTP allows: escapes in the address, a plain head, a body only where one is taken."


class MalformedJson(Error):
    """The body is not JSON that can be read (400). Look at the line and column in detail; quote the body for the
    shell with single quotes.
    """

    code = "malformed_json"
    hint = "Look at the line and column in detail; quote the body for the shell with single quotes."


class MalformedBody(Error):
    """The body is not what its type says (400). Make the body, its Content-Type and the query agree; send all of it."""

    code = "malformed_body"
    hint = "Make the body, its Content-Type and the query agree; send all of it."


class UploadCompleted(Error):
    """The upload is complete (400). Nothing more can be appended: GET of the upload says where to find what it made."""

    code = "upload_completed"
    hint = "Nothing more can be appended: GET of the upload says where to find what it made."


class UploadLengthMismatch(Error):
    """The upload's lengths do not agree (400). Say the same length in each request, and send as many bytes."""

    code = "upload_length_mismatch"
    hint = "Say the same length in each request, and send as many bytes."


class DigestMismatch(Error):
    """The body does not have the digest it was announced with (400). The body changed on its way, or the digest is
    of something else: send both again.
    """

    code = "digest_mismatch"
    hint = "The body changed on its way, or the digest is of something else: send both again."


class Unauthorized(Error):
    """Credentials are missing or wrong (401). Send a token of the server's file as Authorization: Bearer, or as
    X-Api-Key.
    """

    code = "unauthorized"
    hint = "Send a token of the server's file as Authorization: Bearer, or as X-Api-Key."


class Forbidden(Error):
    """Not allowed (403). Ask with a token that may do it (GET /v1/me says what this one may); leave as_process away."""

    code = "forbidden"
    hint = "Ask with a token that may do it (GET /v1/me says what this one may); leave as_process away."


class CrossSite(Error):
    """The request comes from a page of another site (403). Call the server from a page that it served itself, or
    have its operator start it with --cors-origin.
    """

    code = "cross_site"
    hint = "Call the server from a page that it served itself, or have its operator start it with --cors-origin."


class HostNotAllowed(Error):
    """The server does not go by this name (403). Use the address that the server listens on, or have its operator
    name the host with --allowed-host.
    """

    code = "host_not_allowed"
    hint = "Use the address that the server listens on, or have its operator name the host with --allowed-host."


class NotFound(Error):
    """There is no such resource (404). Look at the id and the path; ids of other tokens and deleted things are not
    found either.
    """

    code = "not_found"
    hint = "Look at the id and the path; ids of other tokens and deleted things are not found either."


class MethodNotAllowed(Error):
    """The resource does not know this method (405). Use a method of the Allow field."""

    code = "method_not_allowed"
    hint = "Use a method of the Allow field."


class NotAcceptable(Error):
    """No form of the answer is acceptable (406). Ask for a type that detail lists, or use ?format=."""

    code = "not_acceptable"
    hint = "Ask for a type that detail lists, or use ?format=."


class RequestTimeout(Error):
    """The request took too long to arrive (408). Send the request without long pauses: the head within 10 s, bodies
    with 1 KiB a second.
    """

    code = "request_timeout"
    hint = "Send the request without long pauses: the head within 10 s, bodies with 1 KiB a second."


class Conflict(Error):
    """The state does not allow it (409). Read the resource again: it is not in the state that this request needs."""

    code = "conflict"
    hint = "Read the resource again: it is not in the state that this request needs."


class NameTaken(Error):
    """Another array has the name (409). Take another name, delete that array, or replace it: PUT /v1/arrays/by-
    name/NAME/data, with If-Match for another type.
    """

    code = "name_taken"
    hint = (
        "Take another name, delete that array, or replace it: PUT /v1/arrays/by-name/NAME/data, with If-Match "
        "for another type."
    )


class UploadInUse(Error):
    """The upload is being appended to (409). Send one request at a time; HEAD of the upload ends one whose
    connection was lost, and says where to go on.
    """

    code = "upload_in_use"
    hint = "Send one request at a time; HEAD of the upload ends one whose connection was lost, and says where to go on."


class UploadOffsetMismatch(Error):
    """The upload is elsewhere (409). Go on at the offset that the field Upload-Offset says."""

    code = "upload_offset_mismatch"
    hint = "Go on at the offset that the field Upload-Offset says."


class MeshImmutable(Error):
    """A mesh cannot be changed (409). Post the other mesh; it gets an id of its own."""

    code = "mesh_immutable"
    hint = "Post the other mesh; it gets an id of its own."


class DeviceMismatch(Error):
    """Devices do not agree (409). Name the mesh that the arrays are on, reshard them, or send "reshard": true."""

    code = "device_mismatch"
    hint = 'Name the mesh that the arrays are on, reshard them, or send "reshard": true.'


class ShardingMismatch(Error):
    """Shardings do not agree (409). Reshard the array (POST :reshard), or send "reshard": true."""

    code = "sharding_mismatch"
    hint = 'Reshard the array (POST :reshard), or send "reshard": true.'


class ArrayInUse(Error):
    """The array is reserved by another job (409). Wait for that job, or give each job that donates an array of its
    own.
    """

    code = "array_in_use"
    hint = "Wait for that job, or give each job that donates an array of its own."


class ArrayDonated(Error):
    """The array was donated (409). Use the result that took its place, or upload the data again."""

    code = "array_donated"
    hint = "Use the result that took its place, or upload the data again."


class IdempotencyInProgress(Error):
    """The first request with this key is still running (409). Read the job in the Location field; do not send the
    request again.
    """

    code = "idempotency_in_progress"
    hint = "Read the job in the Location field; do not send the request again."


class SessionClosed(Error):
    """The session is closed (409). Open another session."""

    code = "session_closed"
    hint = "Open another session."


class SessionHalted(Error):
    """The session is halted (409). Read the job that failed (halted_by of the session is its number), then POST
    /v1/sessions/{id}:resume.
    """

    code = "session_halted"
    hint = "Read the job that failed (halted_by of the session is its number), then POST /v1/sessions/{id}:resume."


class ModelNotLoaded(Error):
    """The model is not loaded (409). POST /v2/repository/models/NAME/load loads it; POST /v2/repository/index says
    why one is unavailable.
    """

    code = "model_not_loaded"
    hint = "POST /v2/repository/models/NAME/load loads it; POST /v2/repository/index says why one is unavailable."


class JobFinished(Error):
    """The job is over (409). Nobody waits for the reply any more: read the job."""

    code = "job_finished"
    hint = "Nobody waits for the reply any more: read the job."


class Cancelled(Error):
    """The job was cancelled (409). Somebody deleted the job; send the request again if it was not meant."""

    code = "cancelled"
    hint = "Somebody deleted the job; send the request again if it was not meant."


class DependencyFailed(Error):
    """A job that was to make an argument did not (409). Read the job that detail names, mend it, and send both
    again.
    """

    code = "dependency_failed"
    hint = "Read the job that detail names, mend it, and send both again."


class DeletedOrDonated(Error):
    """The data is gone (410). Read what detail names: another array, or the results of a job."""

    code = "deleted_or_donated"
    hint = "Read what detail names: another array, or the results of a job."


class ArrayLost(Error):
    """The data was in memory only and is lost (410). Upload it again, with durability=durable where it has to
    outlive the server.
    """

    code = "array_lost"
    hint = "Upload it again, with durability=durable where it has to outlive the server."


class PreconditionFailed(Error):
    """A condition of the request does not hold (412). Read the resource again, look at what changed, and send its
    ETag.
    """

    code = "precondition_failed"
    hint = "Read the resource again, look at what changed, and send its ETag."


class BodyTooLarge(Error):
    """The body is too large (413). Send less; large values go to POST /v1/arrays as bytes and are named by id."""

    code = "body_too_large"
    hint = "Send less; large values go to POST /v1/arrays as bytes and are named by id."


class QuotaExceeded(Error):
    """The data does not fit the quota (413). Make the array smaller, split it into several, or ask the operator for
    a larger --quota.
    """

    code = "quota_exceeded"
    hint = "Make the array smaller, split it into several, or ask the operator for a larger --quota."


class UriTooLong(Error):
    """The request target is too long (414). Put long values into the body."""

    code = "uri_too_long"
    hint = "Put long values into the body."


class UnsupportedMediaType(Error):
    """This media type is not read here (415). Send a Content-Type that detail lists, gzip, deflate or zstd as
    Content-Encoding.
    """

    code = "unsupported_media_type"
    hint = "Send a Content-Type that detail lists, gzip, deflate or zstd as Content-Encoding."


class RangeNotSatisfiable(Error):
    """The range is outside of the data (416). Ask for bytes that are there: Content-Range has the size."""

    code = "range_not_satisfiable"
    hint = "Ask for bytes that are there: Content-Range has the size."


class ExpectationFailed(Error):
    """The expectation is not known (417). Leave the Expect field away."""

    code = "expectation_failed"
    hint = "Leave the Expect field away."


class InvalidRequest(Error):
    """Fields of the request are wrong (422). Mend the fields that errors points at; the contract lists those that
    are known.
    """

    code = "invalid_request"
    hint = "Mend the fields that errors points at; the contract lists those that are known."


class InvalidQuery(Error):
    """Query parameters are wrong (422). Mend the parameter that detail names."""

    code = "invalid_query"
    hint = "Mend the parameter that detail names."


class InvalidMesh(Error):
    """The mesh is wrong (422). Give each axis a name of its own and each device once; GET /v1/devices lists them."""

    code = "invalid_mesh"
    hint = "Give each axis a name of its own and each device once; GET /v1/devices lists them."


class EmptyMesh(Error):
    """Nothing runs on an empty mesh (422). A mesh with an axis of size 0 can be stored and asked about; run on a
    mesh whose sizes are all at least 1.
    """

    code = "empty_mesh"
    hint = "A mesh with an axis of size 0 can be stored and asked about; run on a mesh whose sizes are all at least 1."


class InvalidSpec(Error):
    """The sharding is wrong (422). Name axes of the mesh, each once, and no more dimensions than the array has."""

    code = "invalid_spec"
    hint = "Name axes of the mesh, each once, and no more dimensions than the array has."


class InvalidArray(Error):
    """The array is wrong (422). Make data, dtype and shape agree."""

    code = "invalid_array"
    hint = "Make data, dtype and shape agree."


class InvalidArgument(Error):
    """An argument does not fit the program (422). Bring the arguments of @main in its order, tokens left out, with
    its types and shapes.
    """

    code = "invalid_argument"
    hint = "Bring the arguments of @main in its order, tokens left out, with its types and shapes."


class InvalidProgram(Error):
    """The program is wrong (422). Mend the text at the line that errors names."""

    code = "invalid_program"
    hint = "Mend the text at the line that errors names."


class ProgramSyntax(Error):
    """The program text cannot be read (422). Mend the text at the line and column that errors names. What is read:
    StableHLO, as jax.jit(f).lower(x).as_text() prints it, and, with "format": "numpy", functions in NumPy syntax
    (/docs/guides/from-numpy).
    """

    code = "program_syntax"
    hint = (
        "Mend the text at the line and column that errors names. What is read: StableHLO, as "
        'jax.jit(f).lower(x).as_text() prints it, and, with "format": "numpy", functions in NumPy syntax '
        "(/docs/guides/from-numpy)."
    )


class ProgramFailed(Error):
    """The program failed while it ran (422). The program itself failed while it ran: look at the line in detail."""

    code = "program_failed"
    hint = "The program itself failed while it ran: look at the line in detail."


class EffectsNotSupported(Error):
    """The program's effects are not possible here (422). Bind the callback to a kind of effect that GET /v1/effects
    shows as lowerable.
    """

    code = "effects_not_supported"
    hint = "Bind the callback to a kind of effect that GET /v1/effects shows as lowerable."


class DonationUnusable(Error):
    """A donated argument cannot be used (422). Donate only what has a result of the same type and sharding, or send
    "donation": "warn".
    """

    code = "donation_unusable"
    hint = 'Donate only what has a result of the same type and sharding, or send "donation": "warn".'


class IdempotencyKeyReused(Error):
    """The key was used with another request (422). Use a new key for each new request, the same one only to repeat
    it.
    """

    code = "idempotency_key_reused"
    hint = "Use a new key for each new request, the same one only to repeat it."


class TooFewDevices(Error):
    """There are not enough devices (422). Use a smaller mesh, or start the server with more --devices."""

    code = "too_few_devices"
    hint = "Use a smaller mesh, or start the server with more --devices."


class MemoryExceeded(Error):
    """The run does not fit in memory (422). Make the run smaller: shard its values over more of the mesh, use
    smaller types; :explain tells the peak.
    """

    code = "memory_exceeded"
    hint = "Make the run smaller: shard its values over more of the mesh, use smaller types; :explain tells the peak."


class DeadlineExceeded(Error):
    """The job's time was up (422). Give a later deadline, or a smaller program."""

    code = "deadline_exceeded"
    hint = "Give a later deadline, or a smaller program."


class BudgetExceeded(Error):
    """The job's budget was used up (422). Make the loop or the values smaller, or ask the operator for a larger
    --step-budget, --operation-budget or --byte-budget: the message says which.
    """

    code = "budget_exceeded"
    hint = (
        "Make the loop or the values smaller, or ask the operator for a larger --step-budget, "
        "--operation-budget or --byte-budget: the message says which."
    )


class NondeterministicJob(Error):
    """A second run of the job gave other effects (422). A job that runs again after a restart must do the same: give
    it the same answers.
    """

    code = "nondeterministic_job"
    hint = "A job that runs again after a restart must do the same: give it the same answers."


class UnsupportedOp(Error):
    """The program uses an op that is not supported (422). Write it with ops that GET /v1/ops shows as supported."""

    code = "unsupported_op"
    hint = "Write it with ops that GET /v1/ops shows as supported."


class UnsupportedDtype(Error):
    """The element type is not supported (422). Use an element type that GET /v1/ops lists for the op."""

    code = "unsupported_dtype"
    hint = "Use an element type that GET /v1/ops lists for the op."


class UnsupportedType(Error):
    """The type is not supported (422). Use dense tensors of known types; NumPy syntax: see /docs/guides/from-numpy."""

    code = "unsupported_type"
    hint = "Use dense tensors of known types; NumPy syntax: see /docs/guides/from-numpy."


class UnsupportedAttribute(Error):
    """The program uses an annotation that is not supported (422). Leave the annotation away that detail names."""

    code = "unsupported_attribute"
    hint = "Leave the annotation away that detail names."


class UnsupportedCustomCall(Error):
    """The custom call is not known (422). Use ops in its place; GET /v1/ops has the custom calls that are known."""

    code = "unsupported_custom_call"
    hint = "Use ops in its place; GET /v1/ops has the custom calls that are known."


class UnsupportedEffect(Error):
    """The effect is not supported (422). Use a kind that GET /v1/effects lists."""

    code = "unsupported_effect"
    hint = "Use a kind that GET /v1/effects lists."


class UnsupportedFormat(Error):
    """The format is not supported (422). Convert the data to a form that detail names."""

    code = "unsupported_format"
    hint = "Convert the data to a form that detail names."


class UnsupportedField(Error):
    """The field is not supported (422). Leave the field away that detail names."""

    code = "unsupported_field"
    hint = "Leave the field away that detail names."


class UnsupportedExtension(Error):
    """This extension of the inference protocol is not supported (422). Leave it away: GET /v2 lists the extensions
    that are supported.
    """

    code = "unsupported_extension"
    hint = "Leave it away: GET /v2 lists the extensions that are supported."


class UnsupportedPartition(Error):
    """The program cannot be partitioned this way (422). Run the program on one device, or write the part that detail
    names otherwise.
    """

    code = "unsupported_partition"
    hint = "Run the program on one device, or write the part that detail names otherwise."


class ServerNotImplemented(Error):
    """Not implemented (501). Do what detail proposes."""

    code = "not_implemented"
    hint = "Do what detail proposes."


class PreconditionRequired(Error):
    """The request must carry a condition (428). Send the condition that detail names."""

    code = "precondition_required"
    hint = "Send the condition that detail names."


class TooManyRequests(Error):
    """Too many requests (429). Keep connections and use them again; wait for Retry-After."""

    code = "too_many_requests"
    hint = "Keep connections and use them again; wait for Retry-After."


class LimitReached(Error):
    """A limit of the principal is reached (429). Delete what is no longer needed, or ask the operator for a higher
    limit; GET /v1/me shows all of them.
    """

    code = "limit_reached"
    hint = "Delete what is no longer needed, or ask the operator for a higher limit; GET /v1/me shows all of them."


class QueueFull(Error):
    """Too many jobs are waiting (429). Wait for Retry-After; RateLimit tells how many more may wait."""

    code = "queue_full"
    hint = "Wait for Retry-After; RateLimit tells how many more may wait."


class HeadTooLarge(Error):
    """The request's head is too large (431). Send fewer and shorter fields."""

    code = "head_too_large"
    hint = "Send fewer and shorter fields."


class Starting(Error):
    """The server is starting (503). Send it again after Retry-After; /readyz tells when the server is ready."""

    code = "starting"
    hint = "Send it again after Retry-After; /readyz tells when the server is ready."


class Draining(Error):
    """The server is shutting down (503). Send it to another server, or again after Retry-After."""

    code = "draining"
    hint = "Send it to another server, or again after Retry-After."


class QueueTimeout(Error):
    """The request waited too long in its model's queue (503). Send it again after Retry-After, with a longer
    timeout, or let the model have more instances.
    """

    code = "queue_timeout"
    hint = "Send it again after Retry-After, with a longer timeout, or let the model have more instances."


class Overloaded(Error):
    """The server is busy (503). Send it again after Retry-After."""

    code = "overloaded"
    hint = "Send it again after Retry-After."


class MemoryFull(Error):
    """The memory for this is in use (503). Send it again after Retry-After; ask for smaller pages (limit=), and send
    large data as raw bytes or .npy.
    """

    code = "memory_full"
    hint = "Send it again after Retry-After; ask for smaller pages (limit=), and send large data as raw bytes or .npy."


class HttpVersion(Error):
    """This version of HTTP is not spoken (505). Speak HTTP/1.1."""

    code = "http_version"
    hint = "Speak HTTP/1.1."


class DiskFull(Error):
    """The disk is full (507). Nothing was acknowledged and lost: free space on the server and send it again."""

    code = "disk_full"
    hint = "Nothing was acknowledged and lost: free space on the server and send it again."


class Crashed(Error):
    """The server ended too often while the job ran (500). The job is not tried again; look into the server's log,
    then send it with other data.
    """

    code = "crashed"
    hint = "The job is not tried again; look into the server's log, then send it with other data."


class RanksDisagree(Error):
    """The server's processes made different plans (500). Tell the operator: all ranks have to be the same build on
    processors of one kind.
    """

    code = "ranks_disagree"
    hint = "Tell the operator: all ranks have to be the same build on processors of one kind."


class StorageFailed(Error):
    """Storage failed (500). Look into the server's log under the request's id."""

    code = "storage_failed"
    hint = "Look into the server's log under the request's id."


class Internal(Error):
    """Something went wrong on our side (500). Report it with the request's id; sending it again may help."""

    code = "internal"
    hint = "Report it with the request's id; sending it again may help."


__all__ = [
    "MalformedRequest",
    "MalformedJson",
    "MalformedBody",
    "UploadCompleted",
    "UploadLengthMismatch",
    "DigestMismatch",
    "Unauthorized",
    "Forbidden",
    "CrossSite",
    "HostNotAllowed",
    "NotFound",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestTimeout",
    "Conflict",
    "NameTaken",
    "UploadInUse",
    "UploadOffsetMismatch",
    "MeshImmutable",
    "DeviceMismatch",
    "ShardingMismatch",
    "ArrayInUse",
    "ArrayDonated",
    "IdempotencyInProgress",
    "SessionClosed",
    "SessionHalted",
    "ModelNotLoaded",
    "JobFinished",
    "Cancelled",
    "DependencyFailed",
    "DeletedOrDonated",
    "ArrayLost",
    "PreconditionFailed",
    "BodyTooLarge",
    "QuotaExceeded",
    "UriTooLong",
    "UnsupportedMediaType",
    "RangeNotSatisfiable",
    "ExpectationFailed",
    "InvalidRequest",
    "InvalidQuery",
    "InvalidMesh",
    "EmptyMesh",
    "InvalidSpec",
    "InvalidArray",
    "InvalidArgument",
    "InvalidProgram",
    "ProgramSyntax",
    "ProgramFailed",
    "EffectsNotSupported",
    "DonationUnusable",
    "IdempotencyKeyReused",
    "TooFewDevices",
    "MemoryExceeded",
    "DeadlineExceeded",
    "BudgetExceeded",
    "NondeterministicJob",
    "UnsupportedOp",
    "UnsupportedDtype",
    "UnsupportedType",
    "UnsupportedAttribute",
    "UnsupportedCustomCall",
    "UnsupportedEffect",
    "UnsupportedFormat",
    "UnsupportedField",
    "UnsupportedExtension",
    "UnsupportedPartition",
    "ServerNotImplemented",
    "PreconditionRequired",
    "TooManyRequests",
    "LimitReached",
    "QueueFull",
    "HeadTooLarge",
    "Starting",
    "Draining",
    "QueueTimeout",
    "Overloaded",
    "MemoryFull",
    "HttpVersion",
    "DiskFull",
    "Crashed",
    "RanksDisagree",
    "StorageFailed",
    "Internal",
]
