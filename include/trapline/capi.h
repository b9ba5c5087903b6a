/* The C face of libtrapline: the contracts table, the checks over tensors in host memory, and the
 * diagnosis that turns facts into a finding. No torch, no Python, no exceptions across this border.
 *
 * The guard's adapters (C++ against the user's torch, or pure Python) call only what is declared here, so
 * neither the compiler nor the C++ standard library of the user's torch has to match Trapline's.
 *
 * Thread safety: every function may be called from any thread at any time.
 */
#ifndef TRAPLINE_CAPI_H_
#define TRAPLINE_CAPI_H_

#include "trapline/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TRAPLINE_API __attribute__((visibility("default")))
#else
#define TRAPLINE_API
#endif

/* Library version, "0.1.0". Static storage. */
TRAPLINE_API const char* trapline_version(void);

/* TRAPLINE_CAPI_VERSION of the loaded library; an adapter built for another one must not use it. */
TRAPLINE_API int trapline_capi_version(void);

/* "int64", "bfloat16": torch's names of a trapline_dtype; "other" for all else. Static storage. */
TRAPLINE_API const char* trapline_dtype_name(int32_t dtype);

/* The whole table; *count receives the number of rows. */
TRAPLINE_API const trapline_contract* trapline_contracts(size_t* count);

/* Applies one row to the arguments of a call. `argument` is required; the others may be NULL where the row
 * names none. Fills *out for TRAPLINE_OK (min, max, total) and TRAPLINE_VIOLATED. Never allocates on the
 * TRAPLINE_OK path. */
TRAPLINE_API int trapline_check(const trapline_contract* row, const trapline_arg* argument,
                                const trapline_arg* bound, const trapline_arg* dim, const trapline_arg* also,
                                trapline_scan* out);

/* The elements of a violated argument, one by one. `predicate`: the row's, or that of one tensor of its list;
 * `scan`: what trapline_check found; `tensor`: in host memory, any strides; of its dtypes integers have the
 * predicates of integers and floating point those of numbers.
 *
 * trapline_offenders: mask[i] becomes 1 where element i in row-major order is bad, else 0; `kind`:
 * trapline_offenders_kind. TRAPLINE_OK, or TRAPLINE_NOT_APPLICABLE with an undefined mask: badness is no
 * property of single elements here (offsets, a mask, a row that sums to nothing). */
TRAPLINE_API int trapline_offenders(int32_t predicate, const trapline_scan* scan,
                                    const trapline_tensor* tensor, int kind, uint8_t* mask);

/* Distinct bad values that a report has room for. */
#define TRAPLINE_MAX_VALUES 16

/* The distinct bad values, most frequent first, at most `capacity`; returns how many were written. 0: they
 * cannot be told, since the scan counts something else than elements, or there are more than 2^24. One bad
 * element is the scan's own: then the tensor is not read and may be NULL. */
TRAPLINE_API int trapline_bad_values(int32_t predicate, const trapline_scan* scan,
                                     const trapline_tensor* tensor, trapline_value* values, int capacity);

/* A copy that does no harm, contiguous and of the same dtype: an index is clamped into its range, a number
 * into its interval (NaN becomes the lower end), a row with a bad probability becomes a row of ones; offsets,
 * ends and masks become zeros. TRAPLINE_NOT_APPLICABLE where there is none: an index into nothing, integers
 * that have to add up. What is computed from the copy is no result. */
TRAPLINE_API int trapline_heal_copy(int32_t predicate, const trapline_scan* scan,
                                    const trapline_tensor* tensor, void* healed);

/* One sweep over a tensor in host memory, of any integer (labels, ids) or floating point dtype; floating
 * point labels and ids must be whole numbers. TRAPLINE_NOT_APPLICABLE for other dtypes; else *out is filled
 * as by trapline_check, but for `first`, which is -1. */
TRAPLINE_API int trapline_data_check(const trapline_data_rule* rule, const trapline_tensor* tensor,
                                     trapline_scan* out);

/* The same, element by element, as a JSON object that can be merged with those of other parts of the data.
 * `first_row`: number of the tensor's first row in the whole. {"error": text} when it does not apply. To be
 * released with trapline_free. */
TRAPLINE_API char* trapline_data_tally(const trapline_data_rule* rule, const trapline_tensor* tensor,
                                       int64_t first_row);

/* Merges tallies (a JSON list, in the order of the data) into {"findings": [...], "total": n}; `subject` is a
 * JSON object with what is known of the data: source, name, dtype, shape. {"error": text} when they cannot be
 * read. To be released with trapline_free. */
TRAPLINE_API char* trapline_data_findings(const trapline_data_rule* rule, const char* tallies,
                                          const char* subject);

/* Turns facts (JSON, see docs/facts.md) into a finding (JSON, finding.schema.json). Returns a string to be
 * released with trapline_free. Facts that cannot be read give {"error": "what: why: what to do"}; an
 * exception that is none of Trapline's business gives {"finding": null}; otherwise {"finding": {...}}. Never
 * returns NULL except when memory is exhausted. */
TRAPLINE_API char* trapline_diagnose(const char* facts_json);

/* What is left to say of a violation where the diagnosis fails: "cross_entropy: 1 of 4 elements of target is
 * not valid: 10, at position 2". Written into `text`, at most `size` bytes with the NUL, nothing allocated;
 * returns the length. `contract`: the row's id, or NULL; `scan`: NULL when nothing is known. */
TRAPLINE_API int trapline_bare_sentence(const char* contract, const trapline_scan* scan, char* text,
                                        size_t size);

/* The same as a finding (JSON, finding.schema.json). `why`: why the cause cannot be named. To be released
 * with trapline_free; NULL when memory is exhausted. */
TRAPLINE_API char* trapline_bare_finding(const char* contract, const trapline_scan* scan, const char* why);

/* A finding (JSON, finding.schema.json) as the text that `trapline run` prints, for the terminal or file
 * behind `descriptor`. To be released with trapline_free; NULL when it is no finding, or memory is exhausted.
 */
TRAPLINE_API char* trapline_render(const char* finding_json, int descriptor);

/* The same as a piece of HTML for the output of a notebook's cell: one <div> with its own style, without
 * script, everything that a program wrote escaped. NULL as above. */
TRAPLINE_API char* trapline_render_html(const char* finding_json);

/* What `trapline run` collects: files of the report folder, each written beside and renamed, so that nobody
 * reads half of one. Their names hold this machine and this process. A folder that is missing, closed or full
 * fails the call, never the process: not by a signal (SIGXFSZ) either, and a forked child never waits for a
 * lock of its parent.
 *
 * *text receives the path of what was written, or, with TRAPLINE_FILE_FAILED, one line: what, why, what to
 * do. It is to be released with trapline_free; NULL with TRAPLINE_FILE_ENOUGH, and when memory is exhausted.
 */

/* A report with this one finding (JSON) as FOLDER/finding-HOST-PID.TAG-N.json; `notes`: a JSON list of texts.
 * TRAPLINE_FILE_ENOUGH: this process has written TRAPLINE_MAX_FINDINGS of them there. `always`: written all
 * the same, since it ended the program. */
TRAPLINE_API int trapline_write_finding(const char* folder, const char* finding, const char* notes,
                                        int always, char** text);

/* How many findings this process has written into `folder`. */
TRAPLINE_API int trapline_findings_written(const char* folder);

/* What a process says besides its findings: `content` (JSON) as FOLDER/KIND-HOST-PID.TAG.json. */
TRAPLINE_API int trapline_write_file(const char* folder, const char* kind, const char* content, char** text);

/* Releases a text that one of these functions has given. NULL is allowed. */
TRAPLINE_API void trapline_free(char* text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TRAPLINE_CAPI_H_ */
