	.text
	.globl	k
	.type	k,@function
k:
.LBB0_504:                              // %"34_for_query_sums_intm.s1.outer"
                                        //   Parent Loop BB0_348 Depth=1
                                        //     Parent Loop BB0_497 Depth=2
                                        //       Parent Loop BB0_499 Depth=3
                                        //         Parent Loop BB0_501 Depth=4
                                        // =>        This Inner Loop Header: Depth=5
	ldr	q1, [x6], #16
	subs	x21, x21, #1
	ldr	q2, [x7], #16
	fmla	v0.4s, v2.4s, v1.4s
	b.ne	.LBB0_504
.LBB0_763:                              // %"65_for_state_after.s0.d.dk"
                                        //   Parent Loop BB0_348 Depth=1
                                        //     Parent Loop BB0_721 Depth=2
                                        // =>    This Inner Loop Header: Depth=3
	ldp	q0, q1, [x3, #-64]
	mov	x10, x11
	ldp	q23, q8, [x3, #-32]
	mov	x13, x16
	ldp	s11, s12, [x11, #-8]
	mov	x5, x1
	fmul	v0.4s, v0.4s, v20.s[0]
	fmul	v1.4s, v1.4s, v20.s[0]
	mov	x6, x18
	fmul	v23.4s, v23.4s, v20.s[0]
	fmul	v8.4s, v8.4s, v20.s[0]
	subs	x4, x4, #1
	add	x11, x11, #16
	fmla	v0.4s, v30.4s, v11.s[0]
	fmla	v1.4s, v31.4s, v11.s[0]
	fmla	v23.4s, v30.4s, v12.s[0]
	fmla	v8.4s, v31.4s, v12.s[0]
	ldp	s11, s12, [x16, #-8]
	add	x16, x16, #16
	fmla	v0.4s, v15.4s, v11.s[0]
	fmla	v1.4s, v10.4s, v11.s[0]
	fmla	v23.4s, v15.4s, v12.s[0]
	fmla	v8.4s, v10.4s, v12.s[0]
	ldp	s11, s12, [x1, #-8]
	add	x1, x1, #16
	fmla	v0.4s, v21.4s, v11.s[0]
	fmla	v1.4s, v22.4s, v11.s[0]
	fmla	v23.4s, v21.4s, v12.s[0]
	fmla	v8.4s, v22.4s, v12.s[0]
	ldp	s11, s12, [x18, #-8]
	add	x18, x18, #16
	fmla	v0.4s, v24.4s, v11.s[0]
	fmla	v1.4s, v9.4s, v11.s[0]
	fmla	v23.4s, v24.4s, v12.s[0]
	fmla	v8.4s, v9.4s, v12.s[0]
	stp	q0, q1, [x3, #-64]
	ldp	q0, q1, [x3]
	stp	q23, q8, [x3, #-32]
	ld1r	{ v23.4s }, [x10], #4
	ld1r	{ v8.4s }, [x13], #4
	fmul	v0.4s, v0.4s, v20.s[0]
	ld1r	{ v11.4s }, [x5], #4
	fmul	v1.4s, v1.4s, v20.s[0]
	ld1r	{ v12.4s }, [x6], #4
	ldr	s27, [x10]
	ldp	q29, q26, [x3, #32]
	fmla	v0.4s, v23.4s, v30.4s
	fmla	v1.4s, v23.4s, v31.4s
	ldr	s23, [x13]
	fmul	v29.4s, v29.4s, v20.s[0]
	fmul	v26.4s, v26.4s, v20.s[0]
	fmla	v0.4s, v8.4s, v15.4s
	fmla	v1.4s, v8.4s, v10.4s
	fmla	v29.4s, v30.4s, v27.s[0]
	fmla	v26.4s, v31.4s, v27.s[0]
	fmla	v0.4s, v11.4s, v21.4s
	fmla	v1.4s, v11.4s, v22.4s
	fmla	v29.4s, v15.4s, v23.s[0]
	fmla	v26.4s, v10.4s, v23.s[0]
	ldr	s23, [x5]
	fmla	v0.4s, v12.4s, v24.4s
	fmla	v1.4s, v12.4s, v9.4s
	fmla	v29.4s, v21.4s, v23.s[0]
	fmla	v26.4s, v22.4s, v23.s[0]
	ldr	s23, [x6]
	stp	q0, q1, [x3]
	fmla	v29.4s, v24.4s, v23.s[0]
	fmla	v26.4s, v9.4s, v23.s[0]
	stp	q29, q26, [x3, #32]
	add	x3, x3, #128
	b.ne	.LBB0_763
// %bb.764:
	ret
.Lfunc_end0:
	.size	k, .Lfunc_end0-k
