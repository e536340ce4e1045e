/* escape_avx512: eight doubles at a time. Compiled with -mavx512f -mavx512dq -mavx512vl -mfma;
 * entered by cpu.c only where the CPU has all of them. The operations that kernels/escape_x86.h, the
 * template, is made of; escape_avx2.c says what each must do. */
#include <immintrin.h>
#include <stdint.h>

#define V_LANES 8
#define V_UNROLL 6 /* as for AVX2, but c fits in registers too */

typedef __m512d vd;
typedef __m512i vi;
typedef __mmask8 vm;

#define V_FN static inline __attribute__((always_inline))

V_FN vd vd_set(double v) { return _mm512_set1_pd(v); }
V_FN vd vd_load(const double *p) { return _mm512_loadu_pd(p); }
V_FN void vd_store(double *p, vd v) { _mm512_storeu_pd(p, v); }
V_FN vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
V_FN vd vd_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
V_FN vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
V_FN vd vd_div(vd a, vd b) { return _mm512_div_pd(a, b); }
V_FN vd vd_floor(vd a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
V_FN vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
V_FN vd vd_fms(vd a, vd b, vd c) { return _mm512_fmsub_pd(a, b, c); }

V_FN vm vd_lt(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ); }
V_FN vm vd_same(vd a, vd b)
{
	return _mm512_cmpeq_epi64_mask(_mm512_castpd_si512(a), _mm512_castpd_si512(b));
}
V_FN vm vm_and(vm a, vm b) { return (vm)(a & b); }
V_FN vm vm_andnot(vm a, vm b) { return (vm)(~a & b); }
V_FN vm vm_or(vm a, vm b) { return (vm)(a | b); }
V_FN vm vm_none(void) { return 0; }
V_FN vm vm_all(void) { return 0xff; }
V_FN unsigned vm_bits(vm m) { return m; }
V_FN vd vd_pick(vm m, vd yes, vd no) { return _mm512_mask_blend_pd(m, no, yes); }

V_FN vi vi_set(int64_t v) { return _mm512_set1_epi64(v); }
V_FN vi v_lane_numbers(void) { return _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7); }
V_FN vi vi_load(const int64_t *p) { return _mm512_loadu_si512(p); }
V_FN void vi_store(int64_t *p, vi v) { _mm512_storeu_si512(p, v); }
V_FN vi vi_add(vi a, vi b) { return _mm512_add_epi64(a, b); }
V_FN vi vi_sub(vi a, vi b) { return _mm512_sub_epi64(a, b); }
V_FN vi vi_count(vi n, vm m) { return _mm512_mask_add_epi64(n, m, n, _mm512_set1_epi64(1)); }
V_FN vi vi_pick(vm m, vi yes, vi no) { return _mm512_mask_blend_epi64(m, no, yes); }
V_FN vi vi_from_bits(vd v) { return _mm512_castpd_si512(v); }
V_FN vd vd_from_bits(vi v) { return _mm512_castsi512_pd(v); }
V_FN vi vi_shr52(vi a) { return _mm512_srli_epi64(a, 52); }
V_FN vi vi_shl52(vi a) { return _mm512_slli_epi64(a, 52); }
V_FN vd vd_from_int(vi v) { return _mm512_cvtepi64_pd(v); }
V_FN void vi_store32(uint32_t *p, vi v) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi64_epi32(v)); }
V_FN void vd_store_float(float *p, vd v) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(v)); }

V_FN void v_lookup(uint32_t *out, const uint32_t *table, vd v, uint32_t size)
{
	__m256i at = _mm256_and_si256(_mm512_cvttpd_epi32(v), _mm256_set1_epi32((int)(size - 1)));

	_mm256_storeu_si256((__m256i *)out, _mm256_i32gather_epi32((const int *)table, at, 4));
}

V_FN vi vi_compress(vi v, unsigned bits) { return _mm512_maskz_compress_epi64((vm)bits, v); }
V_FN vd vd_compress(vd v, unsigned bits) { return _mm512_maskz_compress_pd((vm)bits, v); }

#define V_ISA mq_isa_avx512
#define V_NAME "avx512"
#include "kernels/escape_x86.h"
